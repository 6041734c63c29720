/*
 * A library that has what package abi calls of MPI, for a job of one rank: what it sends comes back to it. It checks
 * every handle that it is given. It stands in for libraries that tests do not find installed.
 *
 * -DSTANDARD     the standard ABI. Numbers from MPI 5.0, chapter 20, as in mpi.h of github.com/mpi-forum/mpi-abi-stubs.
 * -DOPEN_MPI     Open MPI's. Handles are addresses of the variables of mpi.h.in, which Open MPI 5.0 has from 4.1.
 *   both         the standard ABI of Open MPI 6, behind which its variables are visible too.
 *
 * Variables: FAKE_MPI_LEVEL is the thread level that is granted at most (0 to 3), FAKE_MPI_RANK and FAKE_MPI_SIZE what
 * the world says of this process, FAKE_MPI_ABI the major version of the standard ABI.
 */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ERR_COUNT = 2, ERR_TYPE = 3, ERR_COMM = 5, ERR_RANK = 6, ERR_REQUEST = 7, ERR_ROOT = 8, ERR_GROUP = 9, ERR_OP = 10, ERR_ARG = 13, ERR_TRUNCATE = 15, ERR_OTHER = 16 };
static const char *const words[] = {
	[ERR_COUNT] = "wrong count", [ERR_TYPE] = "wrong type", [ERR_COMM] = "wrong communicator", [ERR_RANK] = "wrong rank", [ERR_REQUEST] = "wrong request",
	[ERR_ROOT] = "wrong root", [ERR_GROUP] = "wrong group", [ERR_OP] = "wrong operation", [ERR_ARG] = "wrong argument", [ERR_TRUNCATE] = "message truncated", [ERR_OTHER] = "wrong order",
};

/* Codes are not classes. */
#define FAIL(class) return 0x700 | (class)
#define CHECK(condition, class) do { if (!(condition)) FAIL(class); } while (0)

typedef void *handle;

#ifdef OPEN_MPI
/* Open MPI's variables are structures, of which only the addresses count. */
#define VARIABLE(name) char name[64]
VARIABLE(ompi_mpi_comm_world); VARIABLE(ompi_mpi_errors_return); VARIABLE(ompi_request_null);
VARIABLE(ompi_mpi_byte);
VARIABLE(ompi_mpi_int8_t); VARIABLE(ompi_mpi_uint8_t); VARIABLE(ompi_mpi_int16_t); VARIABLE(ompi_mpi_uint16_t);
VARIABLE(ompi_mpi_int32_t); VARIABLE(ompi_mpi_uint32_t); VARIABLE(ompi_mpi_int64_t); VARIABLE(ompi_mpi_uint64_t);
VARIABLE(ompi_mpi_float); VARIABLE(ompi_mpi_double); VARIABLE(ompi_mpi_c_float_complex); VARIABLE(ompi_mpi_c_double_complex);
VARIABLE(ompi_mpi_op_sum); VARIABLE(ompi_mpi_op_min); VARIABLE(ompi_mpi_op_max); VARIABLE(ompi_mpi_op_prod);
VARIABLE(ompi_mpi_op_band); VARIABLE(ompi_mpi_op_bor); VARIABLE(ompi_mpi_op_bxor);
#endif

#ifdef STANDARD
#define VERSION "Fake MPI with the standard ABI"
#define H(number, variable) ((handle)(number))
#define REQUEST_NULL ((handle)0x180)
enum { FUNNELED = 1024, SERIALIZED = 2048, MULTIPLE = 4096 };
typedef struct { int source, tag, error, internal[5]; } status;
#else
#define VERSION "Open MPI v5.0.9, package: a fake"
#define H(number, variable) ((handle)variable)
#define REQUEST_NULL ((handle)ompi_request_null)
enum { FUNNELED = 1, SERIALIZED = 2, MULTIPLE = 3 };
typedef struct { int source, tag, error, cancelled; size_t bytes; } status;
#endif
static const int levels[] = {0, FUNNELED, SERIALIZED, MULTIPLE};
#define WORLD H(0x101, ompi_mpi_comm_world)
#define ERRORS_RETURN H(0x143, ompi_mpi_errors_return)
#define IN_PLACE ((void *)1)
#define ANY_SOURCE (-1)

/* size is that of an element, and 0 for what is no type. */
static int size(handle type)
{
	if (type == H(0x247, ompi_mpi_byte) || type == H(0x240, ompi_mpi_int8_t) || type == H(0x241, ompi_mpi_uint8_t)) return 1;
	if (type == H(0x248, ompi_mpi_int16_t) || type == H(0x249, ompi_mpi_uint16_t)) return 2;
	if (type == H(0x250, ompi_mpi_int32_t) || type == H(0x251, ompi_mpi_uint32_t) || type == H(0x210, ompi_mpi_float)) return 4;
	if (type == H(0x258, ompi_mpi_int64_t) || type == H(0x259, ompi_mpi_uint64_t) || type == H(0x214, ompi_mpi_double)) return 8;
	if (type == H(0x212, ompi_mpi_c_float_complex)) return 8;
	if (type == H(0x216, ompi_mpi_c_double_complex)) return 16;
	return 0;
}

static int is_op(handle op)
{
	return op == H(0x21, ompi_mpi_op_sum) || op == H(0x22, ompi_mpi_op_min) || op == H(0x23, ompi_mpi_op_max) || op == H(0x24, ompi_mpi_op_prod) ||
		op == H(0x28, ompi_mpi_op_band) || op == H(0x29, ompi_mpi_op_bor) || op == H(0x2a, ompi_mpi_op_bxor);
}

static int number(const char *name, int otherwise)
{
	const char *text = getenv(name);
	return text != NULL ? atoi(text) : otherwise;
}

static int initialised, finalised;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all that follows */
static struct { int used; } comms[64];

static int known(handle comm)
{
	int known = comm == WORLD;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < sizeof comms / sizeof *comms; i++)
		known |= comm == (handle)&comms[i] && comms[i].used;
	pthread_mutex_unlock(&lock);
	return known && initialised && !finalised;
}

int MPI_Get_library_version(char *text, int *length)
{
	*length = sprintf(text, "%s", VERSION);
	return 0;
}

#ifdef STANDARD
int MPI_Abi_get_version(int *major, int *minor)
{
	*major = number("FAKE_MPI_ABI", 1);
	*minor = 0;
	return 0;
}
#endif

int MPI_Initialized(int *flag) { *flag = initialised; return 0; }

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
	int granted = levels[number("FAKE_MPI_LEVEL", 3)];
	CHECK(!initialised, ERR_OTHER);
	CHECK(argc == NULL && argv == NULL, ERR_ARG);
	CHECK(required == MULTIPLE, ERR_ARG); /* what the package asks for */
	*provided = granted;
	initialised = 1;
	return 0;
}

int MPI_Finalize(void)
{
	CHECK(initialised && !finalised, ERR_OTHER);
	finalised = 1;
	return 0;
}

int MPI_Error_class(int code, int *class) { *class = code & 0xff; return 0; }

int MPI_Error_string(int code, char *text, int *length)
{
	*length = sprintf(text, "%s", words[code & 0xff]);
	return 0;
}

int MPI_Comm_set_errhandler(handle comm, handle errhandler)
{
	CHECK(known(comm), ERR_COMM);
	CHECK(errhandler == ERRORS_RETURN, ERR_ARG);
	return 0;
}

int MPI_Comm_rank(handle comm, int *rank)
{
	CHECK(known(comm), ERR_COMM);
	*rank = number("FAKE_MPI_RANK", 0);
	return 0;
}

int MPI_Comm_size(handle comm, int *size)
{
	CHECK(known(comm), ERR_COMM);
	*size = number("FAKE_MPI_SIZE", 1);
	return 0;
}

int MPI_Comm_free(handle *comm)
{
	CHECK(known(*comm) && *comm != WORLD, ERR_COMM);
	pthread_mutex_lock(&lock);
	*(int *)*comm = 0;
	pthread_mutex_unlock(&lock);
	return 0;
}

static char all; /* the group of the one rank */

int MPI_Comm_group(handle comm, handle *group) { CHECK(known(comm), ERR_COMM); *group = &all; return 0; }

int MPI_Group_incl(handle group, int n, const int ranks[], handle *made)
{
	CHECK(group == &all, ERR_GROUP);
	CHECK(n == 1 && ranks[0] == 0, ERR_RANK);
	*made = &all;
	return 0;
}

int MPI_Group_free(handle *group) { CHECK(*group == &all, ERR_GROUP); return 0; }

int MPI_Comm_create_group(handle comm, handle group, int tag, handle *made)
{
	CHECK(group == &all, ERR_GROUP);
	CHECK(tag >= 0, ERR_ARG);
	CHECK(known(comm), ERR_COMM);
	pthread_mutex_lock(&lock);
	*made = NULL;
	for (size_t i = 0; i < sizeof comms / sizeof *comms && *made == NULL; i++)
		if (!comms[i].used) {
			comms[i].used = 1;
			*made = &comms[i];
		}
	pthread_mutex_unlock(&lock);
	CHECK(*made != NULL, ERR_OTHER);
	return 0;
}

/* A message that was sent and not received, or a receive without a message, or one that has ended. */
typedef struct request {
	struct request *next;
	handle comm;
	char *bytes;
	size_t length; /* of the message, or of the buffer of a receive that waits */
	int tag, receives, ended, cancelled, error;
} request;
static request *waiting; /* messages and receives, oldest first */

/* take returns the oldest that waits for its counterpart. */
static request *take(handle comm, int tag, int receives)
{
	for (request **p = &waiting; *p != NULL; p = &(*p)->next) {
		request *r = *p;
		if (r->comm == comm && r->tag == tag && r->receives == receives) {
			*p = r->next;
			return r;
		}
	}
	return NULL;
}

static void add(request *r)
{
	request **p = &waiting;
	while (*p != NULL)
		p = &(*p)->next;
	r->next = NULL;
	*p = r;
}

static void deliver(request *to, const char *bytes, size_t length)
{
	if (length > to->length) {
		to->error = 0x700 | ERR_TRUNCATE;
		length = to->length;
	}
	memcpy(to->bytes, bytes, length);
	to->length = length;
	to->ended = 1;
}

static int valid(handle comm, const void *buffer, int count, handle type)
{
	CHECK(known(comm), ERR_COMM);
	CHECK(count >= 0, ERR_COUNT);
	CHECK(size(type) > 0, ERR_TYPE);
	CHECK(buffer != NULL || count == 0, ERR_ARG);
	return 0;
}

static request *new(handle comm, void *buffer, size_t length, int tag, int receives)
{
	request *r = calloc(1, sizeof *r);
	r->comm = comm, r->bytes = buffer, r->length = length, r->tag = tag, r->receives = receives;
	return r;
}

int MPI_Isend(const void *buffer, int count, handle type, int to, int tag, handle comm, handle *made)
{
	int code = valid(comm, buffer, count, type);
	size_t length = (size_t)count * size(type);
	if (code != 0)
		return code;
	CHECK(to == 0, ERR_RANK);
	request *r = new(comm, NULL, length, tag, 0);
	r->ended = 1;
	*made = r;
	pthread_mutex_lock(&lock);
	request *receiver = take(comm, tag, 1);
	if (receiver != NULL) {
		deliver(receiver, buffer, length);
	} else {
		request *message = new(comm, malloc(length + 1), length, tag, 0);
		memcpy(message->bytes, buffer, length);
		add(message);
	}
	pthread_mutex_unlock(&lock);
	return 0;
}

int MPI_Irecv(void *buffer, int count, handle type, int from, int tag, handle comm, handle *made)
{
	int code = valid(comm, buffer, count, type);
	if (code != 0)
		return code;
	CHECK(from == 0 || from == ANY_SOURCE, ERR_RANK);
	request *r = new(comm, buffer, (size_t)count * size(type), tag, 1);
	*made = r;
	pthread_mutex_lock(&lock);
	request *message = take(comm, tag, 0);
	if (message != NULL) {
		deliver(r, message->bytes, message->length);
		free(message->bytes);
		free(message);
	} else {
		add(r);
	}
	pthread_mutex_unlock(&lock);
	return 0;
}

int MPI_Test(handle *h, int *flag, status *s)
{
	CHECK(*h != NULL && *h != REQUEST_NULL, ERR_REQUEST);
	request *r = *h;
	pthread_mutex_lock(&lock);
	int ended = r->ended;
	pthread_mutex_unlock(&lock);
	*flag = ended;
	if (!ended)
		return 0;
	int error = r->error;
	memset(s, 0x55, sizeof *s); /* all of it is the library's */
	s->source = 0, s->tag = r->tag;
#ifdef STANDARD
	uint64_t bytes = r->length;
	memcpy(&s->internal[2], &bytes, sizeof bytes);
	s->internal[4] = r->cancelled;
#else
	s->bytes = r->length, s->cancelled = r->cancelled;
#endif
	free(r);
	*h = REQUEST_NULL;
	return error;
}

int MPI_Test_cancelled(const status *s, int *flag)
{
#ifdef STANDARD
	*flag = s->internal[4];
#else
	*flag = s->cancelled;
#endif
	return 0;
}

int MPI_Get_count(const status *s, handle type, int *count)
{
	CHECK(size(type) > 0, ERR_TYPE);
#ifdef STANDARD
	uint64_t bytes;
	memcpy(&bytes, &s->internal[2], sizeof bytes);
#else
	size_t bytes = s->bytes;
#endif
	*count = (int)(bytes / size(type));
	return 0;
}

int MPI_Cancel(handle *h)
{
	CHECK(*h != NULL && *h != REQUEST_NULL, ERR_REQUEST);
	request *r = *h;
	pthread_mutex_lock(&lock);
	for (request **p = &waiting; *p != NULL; p = &(*p)->next)
		if (*p == r) {
			*p = r->next;
			r->cancelled = r->ended = 1;
			break;
		}
	pthread_mutex_unlock(&lock);
	return 0;
}

/* Collectives of one rank copy. */
static int copy(const void *in, void *out, int count, handle type, handle comm)
{
	int code = valid(comm, in, count, type);
	if (code == 0)
		code = valid(comm, out, count, type);
	if (code == 0 && in != IN_PLACE && out != IN_PLACE)
		memmove(out, in, (size_t)count * size(type));
	return code;
}

static int reduce(const void *in, void *out, int count, handle type, handle op, handle comm)
{
	CHECK(is_op(op), ERR_OP);
	return copy(in, out, count, type, comm);
}

static char *at(const void *buffer, int displacement, handle type) 
{
	return buffer == IN_PLACE ? IN_PLACE : (char *)buffer + (ptrdiff_t)displacement * size(type);
}

int MPI_Barrier(handle comm) { CHECK(known(comm), ERR_COMM); return 0; }
int MPI_Bcast(void *b, int n, handle t, int root, handle c) { CHECK(root == 0, ERR_ROOT); return valid(c, b, n, t); }
int MPI_Allreduce(const void *in, void *out, int n, handle t, handle op, handle c) { return reduce(in, out, n, t, op, c); }
int MPI_Scan(const void *in, void *out, int n, handle t, handle op, handle c) { return reduce(in, out, n, t, op, c); }
int MPI_Exscan(const void *in, void *out, int n, handle t, handle op, handle c) { (void)out; return reduce(in, IN_PLACE, n, t, op, c); }
int MPI_Reduce_scatter_block(const void *in, void *out, int n, handle t, handle op, handle c) { return reduce(in, out, n, t, op, c); }
int MPI_Reduce_scatter(const void *in, void *out, const int n[], handle t, handle op, handle c) { return reduce(in, out, n[0], t, op, c); }
int MPI_Reduce(const void *in, void *out, int n, handle t, handle op, int root, handle c) { CHECK(root == 0, ERR_ROOT); return reduce(in, out, n, t, op, c); }

static int exchange(const void *in, int n, handle t, void *out, int m, handle u, handle c)
{
	CHECK(size(t) > 0 && size(u) > 0, ERR_TYPE);
	CHECK(in == IN_PLACE || out == IN_PLACE || n * size(t) == m * size(u), ERR_TRUNCATE);
	return copy(in, out, in == IN_PLACE ? m : n, in == IN_PLACE ? u : t, c);
}

int MPI_Allgather(const void *in, int n, handle t, void *out, int m, handle u, handle c) { return exchange(in, n, t, out, m, u, c); }
int MPI_Alltoall(const void *in, int n, handle t, void *out, int m, handle u, handle c) { return exchange(in, n, t, out, m, u, c); }
int MPI_Gather(const void *in, int n, handle t, void *out, int m, handle u, int root, handle c) { CHECK(root == 0, ERR_ROOT); return exchange(in, n, t, out, m, u, c); }
int MPI_Scatter(const void *in, int n, handle t, void *out, int m, handle u, int root, handle c) { CHECK(root == 0, ERR_ROOT); return exchange(in, n, t, out, m, u, c); }
int MPI_Allgatherv(const void *in, int n, handle t, void *out, const int m[], const int d[], handle u, handle c) { return exchange(in, n, t, at(out, d[0], u), m[0], u, c); }
int MPI_Gatherv(const void *in, int n, handle t, void *out, const int m[], const int d[], handle u, int root, handle c) { CHECK(root == 0, ERR_ROOT); return exchange(in, n, t, at(out, d[0], u), m[0], u, c); }
int MPI_Scatterv(const void *in, const int n[], const int d[], handle t, void *out, int m, handle u, int root, handle c) { CHECK(root == 0, ERR_ROOT); return exchange(at(in, d[0], t), n[0], t, out, m, u, c); }
int MPI_Alltoallv(const void *in, const int n[], const int d[], handle t, void *out, const int m[], const int e[], handle u, handle c) { return exchange(at(in, d[0], t), n[0], t, at(out, e[0], u), m[0], u, c); }
