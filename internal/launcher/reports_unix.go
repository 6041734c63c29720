//go:build unix

package launcher

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"time"

	faults "github.com/goccl/goccl/internal/failure"
	"github.com/goccl/goccl/internal/launchenv"
)

// reports is the directory of the ranks' reports, "" if there is none.
type reports string

// makeReports creates the directory of reports, once a keeper exists that removes it, and locks it
// for as long as this process lives.
//
// If that fails the job runs without reports, and the launcher uses the order in which ranks end.
func (l *launcher) makeReports() {
	for _, dir := range reportDirectories(l.name) {
		if os.Mkdir(dir, 0o700) == nil {
			absolute, _ := filepath.Abs(dir) // ranks may change their directory
			l.reports, l.lock = reports(absolute), lockDirectory(absolute)
			return
		}
	}
}

// lockDirectory locks a directory until it is closed, or returns nil.
func lockDirectory(dir string) *os.File {
	f, err := os.Open(dir)
	if err == nil && syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
		return f
	}
	_ = f.Close() // nothing was written
	return nil
}

// lockTime is more than it takes to lock a directory that was just made.
const lockTime = time.Second

var jobName = regexp.MustCompile(`^goccl-[0-9a-f]{16}(\.\d+)?$`)

// Leftovers returns the directories of reports of this user's jobs of which launcher and keeper
// were killed. os.RemoveAll removes them.
func Leftovers() (dirs []string) {
	for _, pattern := range reportDirectories("goccl-*") {
		found, _ := filepath.Glob(pattern) // the pattern is valid
		for _, dir := range found {
			info, err := os.Lstat(dir)
			isStarting := err == nil && time.Since(info.ModTime()) < lockTime
			if err != nil || isStarting || !info.IsDir() || !jobName.MatchString(info.Name()) || int(info.Sys().(*syscall.Stat_t).Uid) != os.Geteuid() {
				continue
			}
			if f := lockDirectory(dir); f != nil {
				dirs = append(dirs, dir)
				_ = f.Close() // nothing was written
			}
		}
	}
	return dirs
}

// reportDirectories are candidates for the directory of a job's reports; the first one that can
// be created is used. In containers often only shared memory is writable.
func reportDirectories(job string) []string {
	return slices.Compact([]string{filepath.Join(os.TempDir(), job), filepath.Join("/dev/shm", job)})
}

// removeReports removes the directories of a job's reports.
func removeReports(job string) {
	for _, dir := range reportDirectories(job) {
		_ = os.RemoveAll(dir) // a missing one is no error
	}
}

// failureFile is the path of a rank's report of a failure.
func (d reports) failureFile(rank int) string {
	return filepath.Join(string(d), fmt.Sprintf("rank-%d", rank))
}

// resultFile is the path of what a rank reports beside failures.
func (d reports) resultFile(rank int) string {
	return filepath.Join(string(d), fmt.Sprintf("result-%d", rank))
}

// variables returns those that name a rank's files.
func (d reports) variables(rank int) []string {
	if d == "" {
		return nil
	}
	return []string{launchenv.ReportVariable + "=" + d.failureFile(rank), launchenv.ResultVariable + "=" + d.resultFile(rank)}
}

// readReport reads why a rank has failed, as far as it says. An unreadable report is ignored.
func (l *launcher) readReport(i int) {
	if l.reports != "" && l.isHere(i) {
		l.ranks[i].Report, _ = launchenv.ReadReport(l.reports.failureFile(i))
	}
}

// noteFinished notes that a rank has finished. The first that has ended with status 0 is reported
// to the others, since they would wait for it in InitProcessGroup.
func (l *launcher) noteFinished(i int) {
	l.running--
	if r := &l.ranks[i]; !l.hasReportedEnd && !r.Failed() {
		l.reportEnd(launchenv.Ended{Version: 1, Job: l.nodes.job, Rank: i, PID: r.PID})
	}
}

// reportEnd reports the end of a rank to those of this node, and from node 0 to all.
func (l *launcher) reportEnd(e launchenv.Ended) {
	if l.Nodes.Rank == 0 {
		l.nodes.send(nodeMessage{Ended: &e})
	}
	if !l.isHere(e.Rank) {
		e.Host = l.ranks[e.Rank].Host
	}
	l.hasReportedEnd = l.reports == "" || e.Send(string(l.reports)) == nil
}

// isAtWork reports whether the program of a rank, as far as it has called goccl, still runs in its
// group and has not left the others. Helpers, such as the end of a pipe, are no program.
func (l *launcher) isAtWork(rank int) bool {
	r := l.resultOf(rank)
	group, err := syscall.Getpgid(r.PID)
	return r.PID != 0 && !r.Left && err == nil && group == l.ranks[rank].PID && isRunning(r.PID)
}

// findVanished finds ranks whose status 0 is that of another process, such as a shell, and whose
// program others have lost in the middle of their work.
func (l *launcher) findVanished() {
	named := faults.NamedBy(failures(l.exits()))
	for i := range l.ranks {
		r := &l.ranks[i]
		if named[i] != faults.PeerLost || !r.ended || r.Failed() || r.Report != nil {
			continue
		}
		if of := l.resultOf(i); of.Transport != "" && of.PID != r.PID && !of.Left {
			r.hidden = "its program has ended without leaving its group (in a shell, see set -e and set -o pipefail)"
		}
	}
}

// resultOf returns what a rank has reported beside failures, as far as it is readable.
func (l *launcher) resultOf(rank int) launchenv.Result {
	if l.reports == "" || !l.isHere(rank) {
		return l.ranks[rank].result
	}
	r, _ := launchenv.ReadResult(l.reports.resultFile(rank))
	if r == nil {
		return launchenv.Result{}
	}
	return *r
}

// readResults reads what all ranks have reported beside failures.
func (l *launcher) readResults() {
	for i := range l.ranks {
		r := l.resultOf(i)
		l.ranks[i].Transport, l.ranks[i].Value, l.ranks[i].build = r.Transport, r.Value, r.Build
	}
}
