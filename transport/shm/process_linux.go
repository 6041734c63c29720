package shm

import (
	"crypto/rand"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A process id is used again once its process is dead; together with the time at
// which the process started it is unique.

// tick is the unit of these times: USER_HZ is 100 on all machines that Go knows.
const tick = 10 * time.Millisecond

// sinceBoot is the time since the machine started, in nanoseconds.
func sinceBoot() uint64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) // Linux has this clock
	return uint64(now.Nano())
}

// sign says which segment this is, and when it was made. The times of the file would not do:
// they change as ranks write to it.
func (h *header) sign() {
	_, _ = rand.Read(h.id[:]) // never fails
	h.made = sinceBoot()
}

// ownStart is startOf this process, also where /proc counts processes otherwise than
// os.Getpid does, because it belongs to another pid namespace.
func ownStart() (start uint64, err error) { return readStart("/proc/self/stat") }

// startOf returns when a process started, in clock ticks since the machine did
// (proc(5), field 22 of stat), and false if there is none, or only what its parent
// has yet to collect.
func startOf(pid int) (start uint64, ok bool) {
	start, err := readStart(fmt.Sprintf("/proc/%d/stat", pid))
	return start, err == nil
}

func readStart(stat string) (start uint64, err error) {
	b, err := os.ReadFile(stat)
	if err != nil {
		return 0, err
	}
	// The program's name, in parentheses, may hold anything.
	text := string(b)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return 0, fmt.Errorf("%s says of no process that runs when it started: %q", stat, text)
	}
	return strconv.ParseUint(fields[19], 10, 64)
}
