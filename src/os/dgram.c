/* SPDX-License-Identifier: Apache-2.0 */
#include "os/dgram.h"

#include <errno.h>
#include <sys/socket.h>

#include "os/error.h"
#include "os/inet.h"

enum weft_err
os_dgram_receive(int fd, void *buf, size_t cap, size_t *n, struct ip_addr *from, uint16_t *port)
{
	struct sockaddr_storage at;
	socklen_t len = sizeof(at);
	ssize_t r;
	do {
		r = recvfrom(fd, buf, cap, MSG_DONTWAIT, (struct sockaddr *)&at, &len);
	} while (r < 0 && errno == EINTR);
	if (r < 0) {
		return os_error(errno);
	}
	*n = (size_t)r;
	return os_inet_read((struct sockaddr *)&at, len, from, port) ? WEFT_OK : WEFT_EIO;
}

enum weft_err
os_dgram_send(int fd, const void *data, size_t len, const struct ip_addr *to, uint16_t port)
{
	struct os_inet_name name;
	ssize_t r;
	os_inet_name(to, port, 0, &name);
	do {
		r = sendto(fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&name.at,
			name.len);
	} while (r < 0 && errno == EINTR);
	return r < 0 ? os_error(errno) : WEFT_OK;
}
