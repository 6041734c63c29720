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

	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/internal/text"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/internal/groupsync"
	"golang.org/x/sys/unix"
)

// A notice tells the waiting ranks that a rank cannot open the job's file, because it gets no file
// descriptor or no memory, or cannot be a rank of it. It is a symbolic link beside the file's name;
// the link's target holds the rank and the reason. Making and reading a link takes no descriptor.
//
// The rank stays in Join for noticeTime, then removes the link. The link counts only while the
// rank's process lives, which its process id and start time identify. If the rank is killed
// meanwhile, its link never ends a later job; the first rank of that job to see it removes it.
// The link's name differs between users and between secrets.
type notice struct {
	rank      int // ranks of a process that is none of the job's
	ranks     int // number of ranks of the job
	pid       int
	namespace string        // the pid namespace of pid
	made      time.Duration // since the machine started
	text      string
}

const (
	noticeTime  = time.Second
	noticeLimit = 10 * noticeTime // an older notice is stale, or its rank is stopped
	noticeMagic = "goccl-notice-1"
	noticeText  = 700 // bytes
)

// noticePath returns the path of the notice of the job that h describes.
func (h header) noticePath() string {
	digest := sha256.Sum256(append([]byte(noticeMagic), h.secret[:]...))
	return fmt.Sprintf("%s~%x", filePath(h.name), digest[:8])
}

// checkNotice returns the reason why a rank of the job cannot join, or nil if no rank has left a
// notice.
func (h header) checkNotice() error {
	path := h.noticePath()
	n, ok := readNotice(path)
	if !ok {
		return nil
	}
	switch n.state() {
	case living:
		if n.rank == n.ranks {
			return errors.New(n.text)
		}
		return &transport.AbortedError{By: n.rank, Cause: errors.New(n.text)}
	case gone:
		_ = removeName(path) // if that fails the next rank tries
	}
	return nil
}

// postNotice leaves a notice of err, if no other rank can find the error by itself, and removes the
// notice after noticeTime.
func (h header) postNotice(ctx context.Context, rank int, err error) {
	_, none := errors.AsType[*transport.AllocationFailedError](err)
	_, misfit := errors.AsType[misfitError](err)
	if h.ranks == 1 || !none && !misfit && !isOutOfDescriptors(err) || checkDirectory(h.total()) != nil { // all ranks find that by themselves
		return
	}
	namespace, noProc := pidNamespace()
	if noProc != nil {
		return // no rank could tell whether this process lives
	}
	n := notice{rank, h.ranks, os.Getpid(), namespace, time.Duration(sinceBoot()), groupsync.JoinFailure(rank, err).Text}.clean()
	path, posted := h.noticePath(), false
	ctx, cancel := interleave.WithTimeout(ctx, noticeTime)
	defer cancel()
	for ctx.Err() == nil {
		if !posted && n.post(path) { // otherwise a notice exists, which other ranks read or remove
			posted = true
			atPoint("noticed")
		}
		interleave.First(ctx.Done(), interleave.After(longestPause))
	}
	if last, ok := readNotice(path); posted && ok && last.made == n.made && last.pid == n.pid {
		_ = removeName(path) // if that fails it is a leftover
	}
}

// post makes the link, and reports whether it succeeded.
func (n notice) post(path string) bool {
	err := os.Symlink(n.String(), path)
	if errors.Is(err, unix.ENOSPC) { // short targets take no page
		n.text = n.text[:min(len(n.text), 50)]
		err = os.Symlink(n.String(), path)
	}
	return err == nil
}

// clean returns the notice with its text cut to noticeText bytes of printable characters.
func (n notice) clean() notice {
	n.text = text.Printable(strings.ToValidUTF8(n.text[:min(len(n.text), noticeText)], ""))
	return n
}

func (n notice) String() string {
	return fmt.Sprintf("%s %d/%d %d %s %d %s", noticeMagic, n.rank, n.ranks, n.pid, n.namespace, int64(n.made), n.text)
}

// readNotice reads the notice at path. ok is false if the file is not a notice of this user.
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
	if errors.Join(err1, err2, err3) != nil || n.rank < 0 || n.rank > n.ranks || n.ranks > maxRanks {
		return notice{}, false
	}
	n.pid, n.namespace, n.made, n.text = pid, fields[3], time.Duration(made), fields[5]
	return n.clean(), true
}

// States of the process that has left a notice.
const (
	unknown = iota // it is in another pid namespace, or this process can open no file
	living
	gone // it is dead, or the notice is older than noticeLimit
)

// state returns the state of the process that has left the notice. The process id identifies
// it, provided that the process started before the notice was made.
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
	case isOutOfDescriptors(err):
		return unknown
	case err != nil || time.Duration(start)*tick > n.made:
		return gone
	default:
		return living
	}
}

// when returns the time at which the notice was made.
func (n notice) when() time.Time { return time.Now().Add(n.made - time.Duration(sinceBoot())) }

// pidNamespace returns the pid namespace of this process.
func pidNamespace() (string, error) { return os.Readlink("/proc/self/ns/pid") }
