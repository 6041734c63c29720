// Package flight is the format of the flight recorder: the last calls, messages and marks of each
// rank, in memory that other ranks and other programs can read while the rank runs and after it
// has died.
//
// # Model
//
// Each rank of a job has a part of the job's memory, which only it writes:
//
//	part   table    4096   the rank, its process, names, and 24 * 64: marks, a ring
//	       lane     5120   messages, of all groups
//	       lane     5120   calls of the first group
//	       lane     5120   calls of another group
//	       ...
//
//	lane   head      256   the group
//	       records    60 * 64, a ring
//	       counters   24 * 40, by collective
//
// The number of lanes follows from the length of the part. Every group that a rank is in takes a
// lane for itself, so that each lane of calls has one writer at a time, and a busy group does not
// overwrite what a waiting group did last. A closed group's lane is reused, the oldest first. If
// all lanes are taken, a group's lane is on the heap, and only its own process sees it.
//
// Names (collectives, types, operations, algorithms) are written once to the table. A record holds
// their indices:
//
//	 0  head    8   number of the call, times 256, plus its state
//	 8  what    8   indices of the names; root or peer
//	16  count   8   elements
//	24  begun   8   when, in nanoseconds of the monotonic clock; 0: not taken
//	32  ended   8   likewise
//	40  label  24   its first bytes; a message has its tag in the first 8
//
// A mark says what the program does from then on, in which step; it has the step as its count, and
// its time as begun.
//
// The monotonic clock is that of all processes of the machine. A reader adds the offset to the time
// of day as it is then, the same for all ranks: times of different ranks are exactly comparable,
// and a clock that is set meanwhile makes no call older than it is.
//
// # Counters
//
// A rank that counts its calls adds each to the counter of its collective when it ends, and each
// message, without times, to that of "send" or "recv". The index of a counter is that of the
// name; names from 24 on, and those that found the table full, share the one with the index 0:
//
//	 0  calls     8   that have ended
//	 8  failures  8   of these, those that returned an error
//	16  bytes     8   of the others: of the longer one of the rank's input and output
//	24  duration  8   in nanoseconds
//	32  waiting   8   the part of it in which the rank waited for others
//
// Each word is stored atomically, and a reader may see a call in some of them. When a group takes
// the lane of another one, that one's counters are added to those of the lane of messages, so that
// the sum over a rank never falls. Those of a group of the same [Series] stay, so that no counter
// of a series falls because a program makes the same groups again and again.
//
// # Memory order
//
// A record is a sequence lock whose counter is the head. The writer stores a head with the
// state writing, then the other words, and then the head with the state begun. Later changes of the
// state are stores of the head alone. A reader loads the head, the words, and the head again; it
// takes the words for true only if both loads gave the same head and the state is not writing.
// Numbers grow, so a head never returns to an earlier value. A rank that dies between two stores
// leaves a record whose number is known and whose rest is not.
//
// The stores must become visible in the order of the program. On amd64 all stores do, and
// [Lane.Begin] takes plain ones; arm64 has a barrier and a release store for it. Go's own atomic
// stores order more than that and take longer. They replace the assembly elsewhere and with the
// build tag noasm.
//
// A reader trusts nothing: it cuts lengths and indices, so that memory that another program has
// overwritten gives a wrong document, not a crash.
package flight
