/*
 * mpi_allreduce times MPI_Allreduce (float, sum, in place) and MPI_Barrier, and
 * prints a CSV row for each size.
 *
 *     mpicc -O2 -o mpi_allreduce mpi_allreduce.c
 *     mpirun -n 2 ./mpi_allreduce LIBRARY ENTRY BUDGET_MS MAX_CALLS COMPUTE_US BYTES...
 *
 * LIBRARY and ENTRY stand in the rows as they are given. 0 bytes is a barrier. If
 * the variable PEERS_THREADS is set, MPI starts with MPI_THREAD_MULTIPLE.
 *
 * The timing rule: in each round every rank computes for COMPUTE_US, more or less,
 * and rewrites its input; all meet, twice, so that none is still on its way, and the
 * operation is timed on every rank; all meet again, so that none rewrites while
 * another is timed. A round counts as long as its slowest rank took. The results of
 * all rounds are verified, outside the timed part. The number of rounds is what fits
 * into the budget, by the fastest of a few that are not counted.
 */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WARM_UP = 3, MIN_CALLS = 5 };
enum { CALIBRATION_STEPS = 20000, CALIBRATIONS = 20 };
enum { ALIGNMENT = 4096 }; /* of a vector, as Go aligns a large one */
enum { CORES_LENGTH = 256 };

static int rank, ranks;
static double steps_per_round; /* of compute */

static double now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

/* compute makes the steps of a random number generator: work in registers. */
static void compute(long steps)
{
	static volatile uint64_t state = 1;
	uint64_t x = state;
	for (long i = 0; i < steps; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
	}
	state = x;
}

/* calibrate returns how many steps of compute a microsecond has; all ranks get rank 0's answer. */
static double calibrate(void)
{
	double fastest = 1e9;
	for (int i = 0; i < CALIBRATIONS; i++) {
		double start = now_us();
		compute(CALIBRATION_STEPS);
		double took = now_us() - start;
		if (took < fastest)
			fastest = took;
	}
	double steps = CALIBRATION_STEPS / fastest;
	MPI_Bcast(&steps, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
	return steps;
}

/* jitter returns a factor from 0.9 to 1.1, by rank and round the same for all libraries. */
static double jitter(int rank, int round)
{
	uint32_t h = (uint32_t)round * 1021 + (uint32_t)rank + 1;
	for (int i = 0; i < 2; i++)
		h = (h ^ h >> 16) * 0x45d9f3b;
	h ^= h >> 16;
	return 0.9 + 0.2 * h / 4294967296.0;
}

/* rewrite fills x with values that say whose they are, where, and in which round. */
static void rewrite(float *x, size_t count, int round)
{
	for (size_t j = 0; j < count; j++)
		x[j] = (float)(rank + (int)((round + j) & 7));
}

/* wrong counts the elements of x that are not the sum of all ranks' inputs. */
static long wrong(const float *x, size_t count, int round)
{
	long n = 0;
	for (size_t j = 0; j < count; j++)
		n += x[j] != (float)(ranks * (ranks - 1) / 2 + ranks * (int)((round + j) & 7));
	return n;
}

/* one_round returns how long the operation took on this rank. */
static double one_round(float *x, size_t count, int round, long *errors)
{
	compute((long)(steps_per_round * jitter(rank, round)));
	rewrite(x, count, round);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
	double start = now_us();
	if (count == 0)
		MPI_Barrier(MPI_COMM_WORLD);
	else
		MPI_Allreduce(MPI_IN_PLACE, x, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
	double took = now_us() - start;
	MPI_Barrier(MPI_COMM_WORLD);
	*errors += wrong(x, count, round);
	return took;
}

/* calls_within returns how many rounds fit into the budget; all ranks get rank 0's answer. */
static long calls_within(double budget_us, long max_calls, float *x, size_t count)
{
	double fastest = budget_us;
	long errors = 0;
	for (int round = 0; round < WARM_UP; round++) {
		double start = now_us();
		one_round(x, count, round, &errors);
		double took = now_us() - start;
		if (took < fastest)
			fastest = took;
	}
	long calls = (long)(budget_us / fastest);
	if (calls < MIN_CALLS)
		calls = MIN_CALLS;
	if (calls > max_calls)
		calls = max_calls;
	MPI_Bcast(&calls, 1, MPI_LONG, 0, MPI_COMM_WORLD);
	return calls;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void *allocate(size_t bytes)
{
	void *p = malloc(bytes);
	if (p == NULL) {
		fprintf(stderr, "mpi_allreduce: no memory for %zu bytes\n", bytes);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	return p;
}

static float *vector(size_t bytes)
{
	void *p = NULL;
	if (posix_memalign(&p, ALIGNMENT, bytes + 1) != 0) {
		fprintf(stderr, "mpi_allreduce: no memory for %zu bytes\n", bytes);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	return p;
}

/* cores returns the cores that each rank may use, "0|1", to rank 0; "" if the system does not show them. */
static const char *cores(void)
{
	char own[CORES_LENGTH] = "", line[2 * CORES_LENGTH];
	FILE *status = fopen("/proc/self/status", "r");
	while (status != NULL && fgets(line, sizeof line, status) != NULL)
		sscanf(line, "Cpus_allowed_list: %255s", own);
	if (status != NULL)
		fclose(status);
	char *all = allocate((size_t)ranks * CORES_LENGTH), *text = allocate((size_t)ranks * CORES_LENGTH);
	MPI_Gather(own, CORES_LENGTH, MPI_CHAR, all, CORES_LENGTH, MPI_CHAR, 0, MPI_COMM_WORLD);
	text[0] = 0;
	for (int i = 0; rank == 0 && i < ranks && own[0] != 0; i++) {
		strcat(text, i == 0 ? "" : "|");
		strcat(text, all + (size_t)i * CORES_LENGTH);
	}
	free(all);
	return text;
}

static void measure(const char *library, const char *entry, double budget_us, long max_calls,
		    double compute_us, const char *cores, size_t bytes)
{
	size_t count = bytes / sizeof(float);
	float *x = vector(bytes);
	long calls = calls_within(budget_us, max_calls, x, count);
	double *took = allocate(calls * sizeof(double));
	long errors = 0;
	for (long i = 0; i < calls; i++)
		took[i] = one_round(x, count, (int)i, &errors);

	double *slowest = allocate(calls * sizeof(double));
	long all_errors;
	MPI_Reduce(took, slowest, (int)calls, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
	MPI_Reduce(&errors, &all_errors, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0) {
		qsort(slowest, calls, sizeof(double), ascending);
		double p50 = slowest[calls / 2], p90 = slowest[calls * 9 / 10], p99 = slowest[calls * 99 / 100];
		double algbw = bytes / p50 / 1e3; /* bytes per us is MB/s */
		double busbw = algbw * 2 * (ranks - 1) / ranks;
		printf("%s,%s,%s,%s,%d,%zu,%s,false,\"%s\",%.0f,1,%ld,%.3f,%.3f,%.3f,%.3f,%.3f,",
		       library, count == 0 ? "barrier" : "all_reduce", entry, count == 0 ? "," : "float32,sum", ranks, bytes,
		       count == 0 ? "" : "true", cores, compute_us, calls, p50, p50, p90, p99, slowest[0]);
		if (count == 0)
			printf(",,,,0\n");
		else
			printf("%.4f,%.4f,,,%ld\n", algbw, busbw, all_errors);
		fflush(stdout);
	}
	free(slowest);
	free(took);
	free(x);
}

int main(int argc, char **argv)
{
	int granted;
	MPI_Init_thread(&argc, &argv, getenv("PEERS_THREADS") != NULL ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &granted);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (argc < 7) {
		if (rank == 0)
			fprintf(stderr, "usage: mpi_allreduce LIBRARY ENTRY BUDGET_MS MAX_CALLS COMPUTE_US BYTES...\n");
		MPI_Finalize();
		return 2;
	}
	if (rank == 0)
		printf("library,collective,entry,dtype,op,ranks,bytes,in_place,consume,cores,compute_us,passes,calls,"
		       "p50_us,best_us,p90_us,p99_us,min_us,algbw_gbs,busbw_gbs,x_own_copy,x_peer_copy,errors\n");
	double compute_us = atof(argv[5]);
	steps_per_round = compute_us * calibrate();
	const char *all_cores = cores();
	for (int i = 6; i < argc; i++)
		measure(argv[1], argv[2], atof(argv[3]) * 1e3, atol(argv[4]), compute_us, all_cores, strtoull(argv[i], NULL, 10));
	MPI_Finalize();
	return 0;
}
