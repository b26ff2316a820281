# SPDX-License-Identifier: Apache-2.0
# A thin front for Meson: the targets that README and HACKING name.

BUILD ?= build
PREFIX ?= /usr/local
MESON_FLAGS ?=

FUZZ_SECONDS ?= 20

.PHONY: all format deps demo test test-fast test-deb deb fuzz check install clean

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD) weft libweft dial-programs

$(BUILD)/build.ninja:
	@command -v meson >/dev/null || { echo "meson is missing: run 'make deps' as root first" >&2; exit 1; }
	@meson setup --buildtype=release --prefix=$(PREFIX) $(MESON_FLAGS) $(BUILD) >/dev/null || { meson setup --buildtype=release --prefix=$(PREFIX) $(MESON_FLAGS) $(BUILD); exit 1; }

# Debian packages that building, the demo and the tests need. As root.
deps:
	@tools/deps

demo:
	@tools/deps
	@$(MAKE) --no-print-directory all
	@/usr/bin/python3 tools/demo $(BUILD)/weft

test:
	@tools/deps
	@/usr/bin/python3 tools/run-tests

# Unit and simulator tests of the plain build only.
test-fast:
	@/usr/bin/python3 tools/run-tests --fast

# Each libFuzzer target for FUZZ_SECONDS on top of its corpus.
fuzz:
	@tools/fuzz $(FUZZ_SECONDS)

# Lays out every C file as .clang-format says.
format:
	@find src include bench test fuzz -name "*.[ch]" | xargs clang-format -i

check:
	@tools/check

# PREFIX counts when it is given here, too, not at the first make alone.
install: $(BUILD)/build.ninja
ifeq ($(origin PREFIX),command line)
	@meson configure $(BUILD) --prefix=$(PREFIX)
endif
	@$(MAKE) --no-print-directory all
	@DESTDIR=$(DESTDIR) meson install -C $(BUILD) --no-rebuild
	@[ -n "$(DESTDIR)" ] || [ "$$(id -u)" != 0 ] || ldconfig

# Debian packages, into DEB. packaging/debian/control names what building them needs.
DEB ?= build-deb
deb:
	@packaging/build-deb $(DEB)

# Installs, upgrades, removes and purges them in a root of its own. As root; needs mmdebstrap, and
# the network for the first time.
test-deb: deb
	@WEFT_DEB=$(abspath $(DEB)) PYTHONPATH=test PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 -m pytest -q -p no:cacheprovider test/package

clean:
	rm -rf build build-*
