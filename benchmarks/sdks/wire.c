/* The bare wire in C: what benchmarks/sdks.py compares the SDKs with.
 *
 *   wire --comm=HOST:PORT --logs=HOST:PORT [ROUNDS]   a task: reads the first frame, asks for a variable
 *   wire serve                                        a supervisor: reads the first frame from stdin, prints
 *                                                     its two ports, answers, prints requests and nanoseconds
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char request_tail[] = "\x82\xa4type\xabGetVariable\xa3key\xa2v1";
static const char reply_tail[] = "\x83\xa3key\xa2v1\xa5value\xa9value_one\xa4type\xaeVariableResult\xc0";
static const char done_tail[] =
    "\x84\xa4type\xabSucceedTask\xa8" "end_date\xb4" "2026-11-30T10:00:00Z"
    "\xactask_outlets\x90\xadoutlet_events\x90";

static void die(const char *what) {
    perror(what);
    exit(1);
}

static void read_all(int fd, unsigned char *at, size_t size) {
    while (size) {
        ssize_t got = read(fd, at, size);
        if (got <= 0) exit(got < 0);
        at += got;
        size -= (size_t)got;
    }
}

static void write_all(int fd, const unsigned char *at, size_t size) {
    while (size) {
        ssize_t sent = write(fd, at, size);
        if (sent < 0) exit(0);
        at += sent;
        size -= (size_t)sent;
    }
}

static unsigned char buffer[1 << 20];

static uint32_t read_frame(int fd) {
    unsigned char head[4];
    read_all(fd, head, 4);
    uint32_t size = (uint32_t)head[0] << 24 | head[1] << 16 | head[2] << 8 | head[3];
    if (size > sizeof buffer) exit(1);
    read_all(fd, buffer, size);
    return size;
}

static uint32_t frame_id(void) {
    const unsigned char *at = buffer + 1;
    if (*at < 0x80) return *at;
    int width = *at == 0xcc ? 1 : *at == 0xcd ? 2 : 4;
    uint32_t id = 0;
    for (int i = 1; i <= width; i++) id = id << 8 | at[i];
    return id;
}

/* [id, ...]: the id always takes five bytes, which every reader accepts. */
static void write_frame(int fd, int parts, uint32_t id, const char *tail, size_t size) {
    unsigned char frame[256];
    uint32_t payload = (uint32_t)(6 + size);
    unsigned char head[10] = {0, 0, payload >> 8, payload, 0x90 | parts, 0xce, id >> 24, id >> 16, id >> 8, id};
    memcpy(frame, head, 10);
    memcpy(frame + 10, tail, size);
    write_all(fd, frame, 10 + size);
}

static int dial(const char *address) {
    char host[64];
    const char *colon = strrchr(address, ':');
    snprintf(host, sizeof host, "%.*s", (int)(colon - address), address);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(colon + 1))};
    inet_pton(AF_INET, host, &to.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    if (connect(fd, (struct sockaddr *)&to, sizeof to)) die("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

static int listen_on(int *port) {
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t size = sizeof at;
    inet_pton(AF_INET, "127.0.0.1", &at.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(fd, (struct sockaddr *)&at, sizeof at) || listen(fd, 1)) die("listen");
    getsockname(fd, (struct sockaddr *)&at, &size);
    *port = ntohs(at.sin_port);
    return fd;
}

static uint64_t nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int serve(void) {
    int comm_port, logs_port, on = 1;
    size_t size = fread(buffer, 1, sizeof buffer, stdin);
    int comm = listen_on(&comm_port), logs = listen_on(&logs_port);
    printf("%d %d\n", comm_port, logs_port);
    fflush(stdout);
    int fd = accept(comm, NULL, NULL);
    if (fd < 0 || accept(logs, NULL, NULL) < 0) die("accept");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    write_all(fd, buffer, size);
    uint64_t first = 0, last = 0;
    unsigned count = 0;
    for (;;) {
        uint32_t length = read_frame(fd);
        uint64_t now = nanoseconds();
        int asks = memmem(buffer, length, "GetVariable", 11) != NULL;
        if (asks) {
            if (!count++) first = now;
            last = now;
            write_frame(fd, 3, frame_id(), reply_tail, sizeof reply_tail - 1);
            continue;
        }
        write_frame(fd, 3, frame_id(), "\xc0\xc0", 2);
        if (!memmem(buffer, length, "SetXCom", 7)) break;
    }
    printf("%u %llu\n", count, (unsigned long long)(last - first));
    return 0;
}

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "serve")) return serve();
    const char *comm_address = NULL, *logs_address = NULL;
    const char *rounds_text = getenv("HANDOFF_ROUNDS");
    uint32_t rounds = rounds_text ? (uint32_t)atoi(rounds_text) : 1;
    for (int i = 1; i < argc; i++) {
        if (!strncmp(argv[i], "--comm=", 7)) comm_address = argv[i] + 7;
        if (!strncmp(argv[i], "--logs=", 7)) logs_address = argv[i] + 7;
    }
    if (!comm_address || !logs_address) return 2;
    int comm = dial(comm_address);
    dial(logs_address);
    read_frame(comm);
    for (uint32_t id = 1; id <= rounds; id++) {
        write_frame(comm, 2, id, request_tail, sizeof request_tail - 1);
        read_frame(comm);
        if (frame_id() != id) return 1;
    }
    write_frame(comm, 2, rounds + 1, done_tail, sizeof done_tail - 1);
    read_frame(comm);
    return 0;
}
