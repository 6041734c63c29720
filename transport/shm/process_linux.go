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

// The system reuses a process id once its process is dead. The id and the start time of a
// process together are unique.

// tick is the unit of start times: USER_HZ is 100 on all architectures of Go.
const tick = 10 * time.Millisecond

// sinceBoot returns the time since the machine started, in nanoseconds.
func sinceBoot() uint64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) // Linux has this clock
	return uint64(now.Nano())
}

// sign sets the segment's id and the time at which it was made. The times of the file would not
// do, because they change when ranks write to it.
func (h *header) sign() {
	_, _ = rand.Read(h.id[:]) // never fails
	h.made = sinceBoot()
}

// madeAt returns when the segment was made, by the clock on the wall.
func (h header) madeAt() time.Time { return time.Now().Add(-time.Duration(sinceBoot() - h.made)) }

// ownStart is startOf for this process. It also works if /proc belongs to another pid namespace,
// where this process has another id.
func ownStart() (start uint64, err error) { return readStart("/proc/self/stat") }

// startOf returns when a process started, in clock ticks since the machine started (proc(5),
// field 22 of stat). ok is false if the process does not exist or is a zombie.
func startOf(pid int) (start uint64, ok bool) {
	start, err := readStart(fmt.Sprintf("/proc/%d/stat", pid))
	return start, err == nil
}

func readStart(stat string) (start uint64, err error) {
	state, start, err := readStat(stat)
	if err == nil && (state == "Z" || state == "X") {
		err = fmt.Errorf("%s is of a process that has ended", stat)
	}
	return start, err
}

// readStat returns the state of a process, a letter of proc(5), and when it started.
func readStat(stat string) (state string, start uint64, err error) {
	b, err := os.ReadFile(stat)
	if err != nil {
		return "", 0, err
	}
	// The program's name, in parentheses, may contain any character.
	text := string(b)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 20 {
		return "", 0, fmt.Errorf("%s has no start time of a process: %q", stat, text)
	}
	start, err = strconv.ParseUint(fields[19], 10, 64)
	return fields[0], start, err
}
