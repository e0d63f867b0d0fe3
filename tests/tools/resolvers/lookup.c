/* Looks a name up as a program in a pod does, and prints its addresses or the error. */
#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>

int main(int argc, char **argv)
{
	struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	struct addrinfo *all, *one;
	char text[NI_MAXHOST];
	int error = argc == 2 ? getaddrinfo(argv[1], NULL, &hints, &all) : EAI_FAIL;
	if (error) {
		fprintf(stderr, "%s\n", gai_strerror(error));
		return 1;
	}
	for (one = all; one; one = one->ai_next)
		if (!getnameinfo(one->ai_addr, one->ai_addrlen, text, sizeof text, NULL, 0, NI_NUMERICHOST))
			puts(text);
	return 0;
}
