// Package cores chooses the cores that the ranks of a job get, for `goccl run` and
// `goccl doctor`.
//
// # Model
//
// A Core is a core of the machine with those of its hyperthreads that this process may use, by
// its affinity, which a cpuset of a control group limits too. A job divides all cores that no
// other job holds. Each rank gets whole neighbouring cores, in the order of the NUMA nodes, so
// that a rank with several cores can use them all.
//
// A job holds the lock of each core that it has: an abstract Unix socket, named after the core, to
// which only one process can be bound. The name is no file, and the kernel frees it when the
// process ends, however it ends. Since anybody can have such a socket, a claim counts only while
// the process that listens on it lives and may run on the core; otherwise the lock is taken under
// another of its names.
//
// All users of a network namespace share the names. Jobs in containers with network namespaces of
// their own do not see each other: they divide all cores each, so the load of every core is that
// of every other.
//
// A job that cannot have cores of its own, or shall not, is a guest of the jobs that hold the
// cores that it may use: it connects to their sockets, and sends a byte, as long as it runs. They
// then let their ranks run on all cores, since a pinned rank leaves other cores idle while ranks of
// two jobs wait for its own. When the last guest has left, they pin their ranks again.
//
// # Concurrency
//
// All functions may be called concurrently, by any number of processes.
//
// # Failure
//
// An error says why the ranks cannot have cores of their own. What a machine does not tell,
// such as the hyperthreads of a core, is taken for absent.
package cores
