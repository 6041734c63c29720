/*
 * mpi_allreduce times MPI_Allreduce (float, sum, in place) and MPI_Barrier, and
 * prints a CSV row for each size.
 *
 *     mpicc -O2 -o mpi_allreduce mpi_allreduce.c
 *     mpirun -n 2 ./mpi_allreduce LIBRARY ENTRY BUDGET_MS MAX_CALLS BYTES...
 *
 * LIBRARY and ENTRY stand in the rows as they are given. 0 bytes is a barrier.
 *
 * The timing rule: in each round every rank rewrites its input, all meet, twice,
 * so that none is still on its way, and the operation is timed on every rank; all
 * meet again, so that none rewrites while another is timed. A round counts as long
 * as its slowest rank took. The results of all rounds are verified, outside the
 * timed part. The number of rounds is what fits into the budget, by the fastest of
 * a few that are not counted.
 */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { WARM_UP = 3, MIN_CALLS = 5 };

static int rank, ranks;

static double now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
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

static void measure(const char *library, const char *entry, double budget_us, long max_calls, size_t bytes)
{
	size_t count = bytes / sizeof(float);
	float *x = allocate(bytes + 1);
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
		double p50 = slowest[calls / 2], p99 = slowest[calls * 99 / 100];
		double algbw = bytes / p50 / 1e3; /* bytes per us is MB/s */
		double busbw = algbw * 2 * (ranks - 1) / ranks;
		if (count == 0)
			printf("%s,barrier,%s,,,%d,0,,false,%ld,%.3f,%.3f,%.3f,,,,,0\n",
			       library, entry, ranks, calls, p50, p99, slowest[0]);
		else
			printf("%s,all_reduce,%s,float32,sum,%d,%zu,true,false,%ld,%.3f,%.3f,%.3f,%.4f,%.4f,,,%ld\n",
			       library, entry, ranks, bytes, calls, p50, p99, slowest[0], algbw, busbw, all_errors);
		fflush(stdout);
	}
	free(slowest);
	free(took);
	free(x);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (argc < 6) {
		if (rank == 0)
			fprintf(stderr, "usage: mpi_allreduce LIBRARY ENTRY BUDGET_MS MAX_CALLS BYTES...\n");
		MPI_Finalize();
		return 2;
	}
	if (rank == 0)
		printf("library,collective,entry,dtype,op,ranks,bytes,in_place,consume,calls,"
		       "p50_us,p99_us,min_us,algbw_gbs,busbw_gbs,x_own_copy,x_peer_copy,errors\n");
	for (int i = 5; i < argc; i++)
		measure(argv[1], argv[2], atof(argv[3]) * 1e3, atol(argv[4]), strtoull(argv[i], NULL, 10));
	MPI_Finalize();
	return 0;
}
