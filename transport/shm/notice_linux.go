package shm

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/goccl/goccl/transport"
	"golang.org/x/sys/unix"
)

// A notice is how a rank that cannot reach the job's file, since it gets no file descriptor or
// no memory, tells the ranks that wait for it: a symbolic link beside the file's name, whose
// target says which rank it is and why. To make and to read one takes no descriptor.
//
// The rank stays in Join for noticeTime to be heard, and then removes the link. The link counts
// only while that process lives, which is known by its id and by when it started: what a rank
// leaves that is killed meanwhile never ends a later job, and the first rank of that to see it
// removes it. Its name tells users and secrets apart.
type notice struct {
	rank      int
	ranks     int // of the job
	pid       int
	namespace string        // of processes, in which pid counts
	made      time.Duration // since the machine has started
	text      string
}

const (
	noticeTime  = time.Second
	noticeLimit = 10 * noticeTime // no notice is older whose rank is not stopped
	noticeMagic = "goccl-notice-1"
	noticeText  = 700 // bytes
)

// noticePath is where ranks of the job that h describes leave a notice.
func (h header) noticePath() string {
	digest := sha256.Sum256(append([]byte(noticeMagic), h.secret[:]...))
	return fmt.Sprintf("%s~%x", filePath(h.name), digest[:8])
}

// noticed is the reason of a rank of the job that has said it cannot join, nil if none has.
func (h header) noticed() error {
	path := h.noticePath()
	n, ok := readNotice(path)
	if !ok {
		return nil
	}
	switch n.state() {
	case living:
		return &transport.AbortedError{By: n.rank, Cause: errors.New(n.text)}
	case gone:
		_ = removeNotice(path) // else the next rank does
	}
	return nil
}

// notify leaves a notice of err for the other ranks, if only this one knows of it, and takes it
// away after noticeTime.
func (h header) notify(ctx context.Context, rank int, err error) {
	_, none := errors.AsType[*transport.AllocationFailedError](err)
	if h.ranks == 1 || !none && !noDescriptor(err) || checkDirectory(h.total()) != nil { // which all ranks find by themselves
		return
	}
	namespace, noProc := pidNamespace()
	if noProc != nil {
		return // none could tell that the process lives
	}
	n := notice{rank, h.ranks, os.Getpid(), namespace, time.Duration(sinceBoot()), failureOf(rank, err).Text}.clean()
	path, left := h.noticePath(), false
	ctx, cancel := context.WithTimeout(ctx, noticeTime)
	defer cancel()
	for ctx.Err() == nil {
		if !left && n.leave(path) { // else there is one, which others hear or remove
			left = true
			atPoint("noticed")
		}
		select {
		case <-ctx.Done():
		case <-time.After(longestPause):
		}
	}
	if last, ok := readNotice(path); left && ok && last.made == n.made && last.pid == n.pid {
		_ = removeNotice(path) // else it is a leftover
	}
}

// leave makes the link, and reports whether it did.
func (n notice) leave(path string) bool {
	err := os.Symlink(n.String(), path)
	if errors.Is(err, unix.ENOSPC) { // short targets take no page
		n.text = n.text[:min(len(n.text), 50)]
		err = os.Symlink(n.String(), path)
	}
	return err == nil
}

// clean is the notice with a text that is not too long and holds printable characters only.
func (n notice) clean() notice {
	n.text = strings.ToValidUTF8(n.text[:min(len(n.text), noticeText)], "")
	n.text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, n.text)
	return n
}

func (n notice) String() string {
	return fmt.Sprintf("%s %d/%d %d %s %d %s", noticeMagic, n.rank, n.ranks, n.pid, n.namespace, int64(n.made), n.text)
}

// readNotice reads what this user has left at path; ok is false if it is no notice.
func readNotice(path string) (n notice, ok bool) {
	var before, after unix.Stat_t
	if unix.Lstat(path, &before) != nil || int(before.Uid) != os.Geteuid() {
		return n, false
	}
	target, err := os.Readlink(path)
	if err != nil || unix.Lstat(path, &after) != nil || before.Ino != after.Ino || before.Uid != after.Uid {
		return n, false
	}
	return parseNotice(target)
}

func parseNotice(target string) (n notice, ok bool) {
	fields := strings.SplitN(target, " ", 6)
	if len(fields) < 6 || fields[0] != noticeMagic {
		return n, false
	}
	_, err1 := fmt.Sscanf(fields[1], "%d/%d", &n.rank, &n.ranks)
	pid, err2 := strconv.Atoi(fields[2])
	made, err3 := strconv.ParseInt(fields[4], 10, 64)
	if errors.Join(err1, err2, err3) != nil || n.rank < 0 || n.rank >= n.ranks || n.ranks > maxRanks {
		return notice{}, false
	}
	n.pid, n.namespace, n.made, n.text = pid, fields[3], time.Duration(made), fields[5]
	return n.clean(), true
}

// State of who has left a notice.
const (
	unknown = iota // it is in another namespace, or this process can open no file
	living
	gone // it is dead, or would have removed the notice long ago
)

// state says what has become of the process that has left the notice, which is unique by its
// id and by having started before.
func (n notice) state() int {
	namespace, noProc := pidNamespace()
	if noProc != nil {
		return unknown
	}
	now := time.Duration(sinceBoot())
	if n.made > now || now-n.made > noticeLimit {
		return gone
	}
	if namespace != n.namespace {
		return unknown
	}
	start, err := readStart(fmt.Sprintf("/proc/%d/stat", n.pid))
	switch {
	case noDescriptor(err):
		return unknown
	case err != nil || time.Duration(start)*tick > n.made:
		return gone
	default:
		return living
	}
}

// when is the time at which the notice was made.
func (n notice) when() time.Time { return time.Now().Add(n.made - time.Duration(sinceBoot())) }

// pidNamespace is the namespace in which this process has its id.
func pidNamespace() (string, error) { return os.Readlink("/proc/self/ns/pid") }

// removeNotice removes a notice; that it is gone already is no error.
func removeNotice(path string) error {
	if err := unix.Unlink(path); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("shared memory %s cannot be removed: %w", path, err)
	}
	return nil
}
