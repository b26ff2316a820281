/* SPDX-License-Identifier: Apache-2.0 */
#include "os/terminal.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>

struct os_terminal {
	int fd;
	struct termios before;
};

bool
os_terminal_size(int fd, unsigned *rows, unsigned *columns)
{
	struct winsize size;
	if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) {
		return false;
	}
	*rows = size.ws_row;
	*columns = size.ws_col;
	return true;
}

enum weft_err
os_terminal_take(int fd, struct os_terminal **out)
{
	struct os_terminal *t = malloc(sizeof(*t));
	if (!t) {
		return WEFT_ENOMEM;
	}
	t->fd = fd;
	if (tcgetattr(fd, &t->before) != 0) {
		free(t);
		return WEFT_EINVAL;
	}
	struct termios now = t->before;
	now.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	now.c_cc[VMIN] = 1;
	now.c_cc[VTIME] = 0;
	if (tcsetattr(fd, TCSANOW, &now) != 0) {
		free(t);
		return WEFT_EINVAL;
	}
	*out = t;
	return WEFT_OK;
}

void
os_terminal_give_back(struct os_terminal *t)
{
	if (t) {
		/* Without what was typed meanwhile: it was meant for the view. */
		(void)tcsetattr(t->fd, TCSAFLUSH, &t->before);
		free(t);
	}
}
