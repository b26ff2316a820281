# SPDX-License-Identifier: Apache-2.0
"""Network labs: namespaces, topologies, traffic and the daemons under test. See README.md."""
from .ns import CommandFailed, Lab, Namespace, NotRoot, Process, need_root
from .topo import Fault, Pair, Routed, burst, cut, established_only, hole, loss, nat, pair, routed, steady, wait_ping
from .wait import WaitTimeout, stays, wait_for
from .weft import Node, agreement, binary, peer, wait_agreed
from .wg import Conf, GoDevice, Keys, PeerConf, genkey, genpsk, keys, pubkey
