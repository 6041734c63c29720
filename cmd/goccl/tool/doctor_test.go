package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/cmd/goccl/internal/doctor"
	"github.com/goccl/goccl/cmd/goccl/internal/measure"
	"github.com/goccl/goccl/transport/shm"
)

// parts are those of an examination, in order.
var parts = []string{doctor.PartMachine, doctor.PartProcesses, doctor.PartConfiguration, doctor.PartYardsticks}

// examined returns the JSON and the exit status.
func examined(t *testing.T) (e examination, status int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	status = run(context.Background(), []string{"doctor", "--json"}, &stdout, &stderr)
	d := json.NewDecoder(&stdout)
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&e))
	require.Equal(t, status != 0, stderr.Len() > 0, "%s", stderr.String())
	return e, status
}

func (e *examination) named(t *testing.T, name string) doctor.Finding {
	t.Helper()
	for _, f := range e.Findings {
		if f.Name == name {
			return f
		}
	}
	t.Fatalf("there is no %q in %+v", name, e.Findings)
	return doctor.Finding{}
}

// The text has all findings, in the order of the parts, and so has the one in
// docs/reference/doctor.md.
func TestDoctor(t *testing.T) {
	file, err := filepath.Abs("../../../docs/reference/doctor.md")
	require.NoError(t, err)
	withoutLauncher(t)
	e, status := examined(t)
	require.Zero(t, status, "%+v", e.Findings)
	require.Len(t, e.Calls, 2)
	require.Len(t, e.Yardsticks, 2)
	require.Equal(t, &measure.Config{File: "built-in ccl.yaml", FoundBy: "built in"}, e.Config)
	require.Contains(t, e.named(t, "all_reduce 25MiB").Says, ", chosen by built-in ccl.yaml:")
	for _, f := range e.Findings {
		require.Contains(t, []doctor.Verdict{doctor.OK, doctor.Note, doctor.Problem}, f.Verdict)
		require.Contains(t, parts, f.Part)
		require.NotEmpty(t, f.Says)
	}
	var page bytes.Buffer
	text := findingsText{out: &page}
	for _, f := range e.Findings {
		text.write(f)
	}
	require.NoError(t, text.end(e.Findings))
	require.Equal(t, e.names(), shown(page.String()))
	require.Regexp(t, `\nno problem, (no note|1 note|\d+ notes)\n$`, page.String())

	document, err := os.ReadFile(file)
	require.NoError(t, err)
	_, after, found := strings.Cut(string(document), "```console\n$ goccl doctor\n")
	require.True(t, found)
	documented, _, _ := strings.Cut(after, "```\n")
	require.Equal(t, e.names(), shown(documented), "docs/reference/doctor.md")
}

// underLauncher makes the tests' process one of three ranks, which times nothing.
func underLauncher(t *testing.T) {
	t.Helper()
	t.Setenv("GOCCL_SHM_NAME", "/doctor-test")
	t.Setenv("GOCCL_SHM_RANK", "1")
	t.Setenv("GOCCL_SHM_SIZE", "3")
}

// withoutLauncher is alone, and without a launcher's variables.
func withoutLauncher(t *testing.T) {
	t.Helper()
	for _, v := range []string{"GOCCL_SHM_NAME", "GOCCL_SHM_RANK", "GOCCL_SHM_SIZE", "RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_STEP_ID"} {
		t.Setenv(v, "")
	}
	alone(t)
}

// names returns the parts and the names of the findings, in the order of the text.
func (e *examination) names() (all []string) {
	for _, part := range parts {
		all = append(all, part)
		for _, f := range e.Findings {
			if f.Part == part {
				all = append(all, f.Name)
			}
		}
	}
	return all
}

var findingLine = regexp.MustCompile(`^  (ok|note|problem) +(\S+( \S+)*)  `)

// shown returns the parts and names in a text.
func shown(page string) (all []string) {
	for line := range strings.Lines(page) {
		line = strings.TrimSuffix(line, "\n")
		if m := findingLine.FindStringSubmatch(line); m != nil {
			all = append(all, m[2])
		} else if slices.Contains(parts, line) {
			all = append(all, line)
		}
	}
	return all
}

// An invalid configuration is a problem with a remedy, and the rest is examined
// nevertheless.
func TestDoctorFindsProblems(t *testing.T) {
	withoutLauncher(t)
	t.Setenv("GOCCL_CONFIG", "missing.yaml")
	e, status := examined(t)
	require.Equal(t, 1, status)
	require.Nil(t, e.Config)
	require.Equal(t, 1, doctor.Count(e.Findings, doctor.Problem), "%+v", e.Findings)
	require.Contains(t, e.named(t, "ccl.yaml").Says, "missing.yaml: cannot read the configuration")
	require.Equal(t, doctor.OK, e.named(t, "a job").Verdict)
	require.Len(t, e.Yardsticks, 2)

	t.Setenv("GOCCL_SHM_RANK", "1")
	var stdout, stderr bytes.Buffer
	require.Equal(t, 1, run(context.Background(), []string{"doctor"}, &stdout, &stderr))
	require.Equal(t, "goccl: error: 2 problems keep ranks from working\n", stderr.String())
	require.Regexp(t, `(?m)^  problem  launcher +GOCCL_SHM_NAME and GOCCL_SHM_SIZE are not set: .*\n {10,}-> set or unset the variables`, stdout.String())
	require.Regexp(t, `(?m)^  note     all +not measured`, stdout.String())
	require.Contains(t, stdout.String(), "\n2 problems, ")
}

func TestDoctorInterrupted(t *testing.T) {
	withoutLauncher(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stdout, stderr bytes.Buffer
	require.Equal(t, 1, run(ctx, []string{"doctor"}, &stdout, &stderr))
	require.Equal(t, "goccl: error: interrupted\n", stderr.String())
	require.Empty(t, stdout.String())
}

// Each finding is written when it is known: those before the end of a doctor that is interrupted, or killed, are read.
func TestDoctorWritesWhatItFinds(t *testing.T) {
	withoutLauncher(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stdout := interrupting{at: "launcher", interrupt: cancel}
	var stderr bytes.Buffer
	require.Equal(t, 1, run(ctx, []string{"doctor"}, &stdout, &stderr))
	require.Equal(t, "goccl: error: interrupted\n", stderr.String())
	require.Contains(t, stdout.String(), "\n  ok       a job ")
	require.Regexp(t, `\n  ok       launcher +none: ranks are goroutines\n$`, stdout.String())
}

// interrupting is an output that interrupts when it gets the line of a finding.
type interrupting struct {
	bytes.Buffer
	at        string
	interrupt func()
}

func (i *interrupting) Write(p []byte) (int, error) {
	if m := findingLine.FindSubmatch(p); m != nil && string(m[2]) == i.at {
		i.interrupt()
	}
	return i.Buffer.Write(p)
}

// Under a launcher, the calls shown are the job's, and nothing is timed.
func TestDoctorUnderALauncher(t *testing.T) {
	withoutLauncher(t)
	underLauncher(t)
	e, status := examined(t)
	require.Zero(t, status, "%+v", e.Findings)
	require.Contains(t, e.named(t, "launcher").Says, "rank 1 of 3 by the variables of goccl run")
	require.Contains(t, e.named(t, "room").Says, "for 3 ranks")
	require.Empty(t, e.Yardsticks)
	require.Contains(t, e.named(t, "all").Says, "not measured")
	for _, c := range e.Calls {
		require.Equal(t, 3, c.Ranks)
		require.Equal(t, "shm", c.Transport)
	}

	writeFile(t, "ccl.yaml", "version: 1\ndefaults: {world_size: 4}\nalgorithms: {direct: {module: direct}}\nrules: [{algorithm: direct}]\n")
	e, status = examined(t)
	require.Equal(t, 1, status)
	require.Contains(t, e.named(t, "ccl.yaml").Says, "the world size is 4 by ccl.yaml:2 (defaults.world_size), but a launcher has started 3 ranks")
	require.NoError(t, os.Remove("ccl.yaml"))

	for _, args := range [][]string{{"doctor"}, {"doctor", "--json"}} {
		var stderr bytes.Buffer
		require.Equal(t, 1, run(context.Background(), args, brokenWriter{}, &stderr))
		require.Contains(t, stderr.String(), "no room")
	}

	t.Setenv("GOCCL_TRANSPORT", "local")
	e, status = examined(t)
	require.Equal(t, 1, status)
	require.Contains(t, e.named(t, "transport").Says, "local, which connects goroutines")
}

// The leftovers of a dead job are shown and removed by --clean; nothing else is removed.
func TestDoctorClean(t *testing.T) {
	withoutLauncher(t)
	underLauncher(t)
	dead, living := makeSegment(t), makeSegment(t)
	dead.kill()
	e, status := examined(t)
	require.Zero(t, status)
	require.Equal(t, doctor.Note, e.named(t, "leftovers").Verdict)
	require.Equal(t, "goccl doctor --clean", e.named(t, "leftovers").Do)
	mine := slices.DeleteFunc(e.Leftovers, func(l shm.Leftover) bool { return l.Job != dead.job && l.Job != living.job })
	require.Len(t, mine, 1)
	require.Equal(t, dead.job, mine[0].Job)
	require.Equal(t, dead.path, mine[0].Path)
	require.Equal(t, 2, mine[0].Ranks)
	require.Equal(t, shm.SegmentBytes(2), mine[0].Bytes)

	found := mine[0]
	lives := found
	lives.Path, lives.Job = living.path, living.job
	var out bytes.Buffer
	require.ErrorContains(t, (&doctorCommand{}).clean(&out, []shm.Leftover{found, lives}), "1 of 2 could not be removed")
	require.Contains(t, out.String(), fmt.Sprintf("removed %s: 6.2 MiB, of job %s of 2 ranks, made at ", dead.path, dead.job))
	require.Regexp(t, "(?m)^kept "+regexp.QuoteMeta(living.path)+": .* is in use", out.String())
	require.NoFileExists(t, dead.path)
	require.FileExists(t, living.path)

	out.Reset()
	require.Error(t, (&doctorCommand{JSON: true}).clean(&out, []shm.Leftover{found, lives})) // one is gone already
	var r removal
	require.NoError(t, json.Unmarshal(out.Bytes(), &r))
	require.Len(t, r.Removed, 1)
	require.Len(t, r.Kept, 1)
	require.Equal(t, living.path, r.Kept[0].Path)
	require.Contains(t, r.Kept[0].Why, "is in use")

	living.kill()
	require.NoError(t, shm.Leftover{Path: living.path}.Remove())

	t.Setenv("TMPDIR", t.TempDir())
	reports := filepath.Join(os.TempDir(), "goccl-0123456789abcdef")
	require.NoError(t, os.Mkdir(reports, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(reports, "rank-0"), nil, 0o600))
	require.NoError(t, os.Chtimes(reports, time.Time{}, time.Now().Add(-time.Minute)))
	all, err := leftovers()
	require.NoError(t, err)
	out.Reset()
	require.NoError(t, (&doctorCommand{}).clean(&out, slices.DeleteFunc(all, func(l shm.Leftover) bool { return l.Path != reports })))
	require.Equal(t, "removed "+reports+": reports of job goccl-0123456789abcdef, whose launcher was killed\n", out.String())
	require.NoDirExists(t, reports)
	out.Reset()
	require.NoError(t, (&doctorCommand{}).clean(&out, nil))
	require.Equal(t, "nothing to remove: this user has no leftovers of dead jobs\n", out.String())
}

// asRankZero makes the test binary rank 0 of a job whose rank 1 does not come.
const asRankZero = "TEST_GOCCL_AS_RANK_ZERO"

func waitForRankOne(job string) {
	_, err := shm.Join(context.Background(), shm.Job{Name: job, Size: 2})
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// segmentMaker is a rank 0 that waits beside its segment.
type segmentMaker struct {
	job, path string
	kill      func()
}

func makeSegment(t *testing.T) segmentMaker {
	t.Helper()
	job := fmt.Sprintf("tool-test-%x", time.Now().UnixNano())
	c := exec.CommandContext(t.Context(), os.Args[0])
	c.Env = append(os.Environ(), asRankZero+"="+job)
	require.NoError(t, c.Start())
	dead := sync.OnceFunc(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	path := fmt.Sprintf("/dev/shm/goccl-%d-%s", os.Geteuid(), job)
	t.Cleanup(func() {
		dead()
		_ = os.Remove(path) // of a failed test
	})
	require.Eventually(t, func() bool { _, err := os.Stat(path); return err == nil }, 10*time.Second, time.Millisecond)
	return segmentMaker{job, path, dead}
}
