//go:build linux && (amd64 || arm64)

package abi

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/transport"
)

// partVariable names what a process that a launcher has started does instead of the tests.
const partVariable = "TEST_GOCCL_ABI"

// pathVariable is the file of the library, if it is not the launcher's.
const pathVariable = "TEST_GOCCL_PATH"

func TestMain(m *testing.M) {
	part := os.Getenv(partVariable)
	if part == "" {
		os.Exit(m.Run())
	}
	if err := parts[part](); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", part, err)
		os.Exit(1)
	}
	if part != "says" {
		fmt.Println("passed")
	}
}

// mpi is an installed MPI.
type mpi struct {
	family   Family
	launcher string
	args     []string
	library  string
	pack     string // of Debian
}

var installed = []mpi{
	{OpenMPI, "mpirun.openmpi", []string{"--allow-run-as-root", "--oversubscribe"}, "libmpi.so.40", "openmpi-bin"},
	{MPICH, "mpiexec.mpich", nil, "libmpich.so.12", "mpich"},
}

// each runs a test under each MPI that is installed.
func each(t *testing.T, test func(t *testing.T, m mpi)) {
	for _, m := range installed {
		t.Run(m.family.String(), func(t *testing.T) {
			m.need(t)
			test(t, m)
		})
	}
}

// need skips the test if the MPI is not installed, or fails it where TEST_GOCCL_MPI is "required".
// With -short it skips the test where that is not required: make mpi runs it.
func (m mpi) need(t *testing.T) {
	t.Helper()
	if testing.Short() && os.Getenv("TEST_GOCCL_MPI") != "required" {
		t.Skip("make mpi runs it")
	}
	if _, err := exec.LookPath(m.launcher); err != nil {
		why := fmt.Sprintf("%s is not installed: apt-get install %s", m.launcher, m.pack)
		require.NotEqual(t, "required", os.Getenv("TEST_GOCCL_MPI"), why)
		t.Skip(why)
	}
}

// start runs a part on n ranks and returns what they print.
func (m mpi) start(t *testing.T, n int, part string, env ...string) (string, error) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, m.launcher, append(m.args, "-n", fmt.Sprint(n), self)...)
	c.Env = append(append(os.Environ(), partVariable+"="+part), env...)
	_, err = c.StdinPipe() // which must not end before the ranks: mpiexec would die of it
	require.NoError(t, err)
	out, err := c.CombinedOutput()
	return string(out), err
}

// passes runs a part on n ranks, which must pass on all, and say nothing else. A launcher may pass on what a rank says in pieces, with
// those of other ranks between them.
func (m mpi) passes(t *testing.T, n int, part string, env ...string) {
	t.Helper()
	out, err := m.start(t, n, part, env...)
	require.NoError(t, err, "%s", out)
	require.ElementsMatch(t, []byte(strings.Repeat("passed\n", n)), []byte(out), "%s", out)
}

// initialise is Init for a test.
func initialise(path string) (*World, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return Init(ctx, cmp.Or(path, os.Getenv(pathVariable)), os.Getenv)
}

// finalise is Finalize for a test.
func finalise() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return Finalize(ctx)
}

// wait polls until a transfer has ended.
func wait(r *Request) error {
	for deadline := time.Now().Add(20 * time.Second); ; {
		ended, err := r.Test()
		switch {
		case ended || err != nil:
			return err
		case time.Now().After(deadline):
			return fmt.Errorf("a transfer does not end")
		}
		runtime.Gosched()
	}
}

// parts are what the processes of a launcher do.
var parts = map[string]func() error{"life": life, "calls": calling, "foreign": foreign, "dead": dead, "says": says}

// calling makes all kinds of calls between Init and Finalize.
func calling() error {
	w, err := initialise("")
	if err != nil {
		return err
	}
	for _, kind := range []struct {
		name string
		make func(w *World) error
	}{
		{"ring", func(w *World) error { return ring(&w.Comm) }},
		{"lengths", lengths}, {"goroutines", goroutines}, {"wrong", wrong}, {"cancel", cancel}, {"collectives", collectives}, {"allocations", allocations}, {"recovers", recovers},
	} {
		if err := kind.make(w); err != nil {
			return fmt.Errorf("%s: %w", kind.name, err)
		}
	}
	return finalise()
}

func TestRanks(t *testing.T) {
	each(t, func(t *testing.T, m mpi) {
		for _, n := range []int{2, 3, 4} {
			m.passes(t, n, "life")
			m.passes(t, n, "calls")
		}
	})
}

// The library of the other MPI counts one rank, and the error names both.
func TestForeignLauncher(t *testing.T) {
	each(t, func(t *testing.T, m mpi) {
		for _, other := range installed {
			if other.family != m.family {
				other.need(t)
				m.passes(t, 2, "foreign", "TEST_GOCCL_LIBRARY="+other.library)
			}
		}
	})
}

// Finalize gives up when its context ends, if a rank has died.
func TestFinalizeWithoutAPeer(t *testing.T) {
	each(t, func(t *testing.T, m mpi) {
		dir := t.TempDir()
		_, err := m.start(t, 2, "dead", "TEST_GOCCL_DIR="+dir)
		require.Error(t, err, "a rank was killed")
		if m.family == MPICH {
			return // its launcher ends the survivors at once
		}
		said, err := os.ReadFile(filepath.Join(dir, "survivor"))
		require.NoError(t, err)
		require.Equal(t, "context deadline exceeded", string(said))
	})
}

// Without a library, or with one that is none, the error says what to do.
func TestNoLibrary(t *testing.T) {
	_, err := load("", Family(0))
	require.Error(t, err)
	_, err = load("/nowhere/libmpi.so.40", OpenMPI)
	require.ErrorContains(t, err, `transport "mpi" is not available: cannot load the MPI library /nowhere/libmpi.so.40: `)
	_, err = load("libc.so.6", OpenMPI)
	require.ErrorContains(t, err, "libc.so.6 is no MPI library, or one of before version 3: ")
	_, err = Init(t.Context(), "", func(string) string { return "" })
	require.ErrorContains(t, err, "no MPI launcher started this process")
	require.NoError(t, Finalize(t.Context()), "nothing to end")
}

// life: the same World for every Init, none after Finalize, which any goroutine may call.
func life() error {
	w, err := initialise("")
	if err != nil {
		return err
	}
	l, err := Launched(os.Getenv)
	if err != nil {
		return err
	}
	again, err := initialise("")
	if err != nil || again != w || w.Size != l.Size || w.Family != l.Family {
		return fmt.Errorf("%v, %v, %+v, %+v", err, again == w, w, l)
	}
	d, err := groupOfAll(w, 0)
	if err != nil {
		return err
	}
	if d.Rank != w.Rank || d.Size != w.Size {
		return fmt.Errorf("the copy is of rank %d of %d", d.Rank, d.Size)
	}
	if err := d.Free(); err != nil {
		return err
	}
	errs := make(chan error)
	for range 3 {
		go func() { errs <- finalise() }()
	}
	for range 3 {
		if err := <-errs; err != nil {
			return err
		}
	}
	if _, err := initialise(""); err != ErrFinalized {
		return fmt.Errorf("Init after Finalize: %v", err)
	}
	return nil
}

// ring: every rank sends to the next and receives from the last one, with tags, while garbage is collected and its
// stack moves.
func ring(c *Comm) error {
	next, last := (c.Rank+1)%c.Size, (c.Rank+c.Size-1)%c.Size
	of := func(rank, tag int) []byte { return bytes.Repeat([]byte{byte(rank + tag)}, 1000) }
	var out, in Request
	for tag := range 200 {
		b := make([]byte, 1200)
		if err := c.Irecv(&in, b, last, tag); err != nil {
			return err
		}
		if err := c.Isend(&out, of(c.Rank, tag), next, tag); err != nil {
			return err // from here on the buffer is the library's alone
		}
		if tag%20 == 0 {
			runtime.GC()
			grow(1000)
		}
		if err := wait(&in); err != nil {
			return err
		}
		if err := wait(&out); err != nil {
			return err
		}
		if in.Source != last || in.Tag != tag || in.Bytes != 1000 || !bytes.Equal(b[:1000], of(last, tag)) {
			return fmt.Errorf("message %d: from rank %d, tag %d, %d bytes, %v", tag, in.Source, in.Tag, in.Bytes, b[:4])
		}
	}
	return nil
}

// grow moves the goroutine's stack.
func grow(depth int) int {
	var room [64]int
	if depth == 0 {
		return room[0]
	}
	return grow(depth-1) + room[depth%64]
}

// lengths: empty and long messages, from any rank.
func lengths(w *World) error {
	for _, n := range []int{0, 1, 4096, 1 << 20} {
		if w.Rank > 0 {
			var r Request
			if err := w.Isend(&r, bytes.Repeat([]byte{byte(w.Rank)}, n), 0, n); err != nil {
				return err
			}
			if err := wait(&r); err != nil {
				return err
			}
			continue
		}
		seen := map[int]bool{}
		for range w.Size - 1 {
			var r Request
			b := make([]byte, n)
			if err := w.IrecvAny(&r, b, n); err != nil {
				return err
			}
			if err := wait(&r); err != nil {
				return err
			}
			if r.Bytes != n || n > 0 && (b[0] != byte(r.Source) || b[n-1] != byte(r.Source)) {
				return fmt.Errorf("%d bytes of rank %d, want %d", r.Bytes, r.Source, n)
			}
			seen[r.Source] = true
		}
		if len(seen) != w.Size-1 {
			return fmt.Errorf("messages of %v", seen)
		}
	}
	return nil
}

// groupOfAll returns another communicator of all ranks.
func groupOfAll(w *World, tag int) (*Comm, error) {
	ranks := make([]int, w.Size)
	for rank := range ranks {
		ranks[rank] = rank
	}
	return w.Group(ranks, tag)
}

// goroutines: four of them exchange messages on communicators of their own at the same time.
func goroutines(w *World) error {
	errs := make(chan error)
	for tag := range 4 {
		c, err := groupOfAll(w, tag)
		if err != nil {
			return err
		}
		go func() { errs <- ring(c) }()
	}
	for range 4 {
		if err := <-errs; err != nil {
			return err
		}
	}
	return nil
}

// wrong: mistakes are errors with a class, and MPI goes on.
func wrong(w *World) error {
	var r Request
	err := w.startTransfer(&r, false, []byte{1}, int32(w.Size), 0) // behind the check of Isend
	if e, ok := err.(*Error); !ok || e.Function != "MPI_Isend" || e.Class != 6 || e.Code == 0 || e.Text == "" {
		return fmt.Errorf("to a rank that does not exist: %v", err)
	}
	for _, rank := range []int{w.Size, -1, -2, -1 << 31, 1 << 32, 1<<32 + 1, math.MinInt, math.MaxInt} {
		_, err := w.Group([]int{rank}, 0)
		for what, err := range map[string]error{
			"Isend": w.Isend(&r, []byte{1}, rank, 0), "Irecv": w.Irecv(&r, []byte{1}, rank, 0), "Group": err,
		} {
			if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("rank %d does not exist: ranks are 0 to %d", rank, w.Size-1)) {
				return fmt.Errorf("%s, rank %d: %v", what, rank, err)
			}
		}
	}
	var in, out Request
	next, last := (w.Rank+1)%w.Size, (w.Rank+w.Size-1)%w.Size
	if err := w.Irecv(&in, make([]byte, 2), last, 1); err != nil {
		return err
	}
	if err := w.Irecv(&in, make([]byte, 2), last, 1); err != errRunning {
		return fmt.Errorf("a request in use: %v", err)
	}
	if err := w.Isend(&out, make([]byte, 3), next, 1); err != nil {
		return err
	}
	if err := wait(&in); err == nil {
		return fmt.Errorf("a message that is too long is none")
	}
	if err := wait(&out); err != nil {
		return err
	}
	return ring(&w.Comm)
}

// cancel: a receive that no rank serves can be withdrawn, and one that was abandoned keeps its memory.
func cancel(w *World) error {
	var r Request
	if err := w.Irecv(&r, make([]byte, 8), w.Rank, 7); err != nil {
		return err
	}
	if ended, err := r.Test(); ended || err != nil {
		return fmt.Errorf("it has ended: %v", err)
	}
	if err := r.Cancel(); err != nil {
		return err
	}
	if err := wait(&r); err != nil || !r.Cancelled {
		return fmt.Errorf("cancelled: %v, %v", r.Cancelled, err)
	}
	lost := new(Request)
	if err := w.Irecv(lost, make([]byte, 8), w.Rank, 8); err != nil {
		return err
	}
	lost.Abandon()
	for range 3 {
		runtime.GC() // a dropped pin would end the process
	}
	if err := w.Isend(&r, []byte("the end."), w.Rank, 8); err != nil {
		return err
	}
	if err := wait(&r); err != nil {
		return err
	}
	return wait(abandoned.all[0])
}

// allocations: transfers and reductions that have been made before allocate nothing. Under the race detector
// sync.Pool drops values at random.
func allocations(w *World) error {
	if raceDetector {
		return nil
	}
	const times = 100 // MPICH's blocking call does not yield where ranks share a core
	next, last := (w.Rank+1)%w.Size, (w.Rank+w.Size-1)%w.Size
	var in, out Request
	a, b := make([]byte, 8), make([]byte, 8)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range times {
		if err := w.Irecv(&in, a, last, 0); err != nil {
			return err
		}
		if err := w.Isend(&out, b, next, 0); err != nil {
			return err
		}
		if err := errors.Join(wait(&in), wait(&out), w.AllReduce(InPlace, a, 1, transport.Uint64, transport.Max)); err != nil {
			return err
		}
	}
	runtime.ReadMemStats(&after)
	if n := after.Mallocs - before.Mallocs; n > times/2 {
		return fmt.Errorf("%d allocations in %d rounds", n, times)
	}
	return nil
}

// recovers: a nil dereference is a panic as ever.
func recovers(*World) (err error) {
	defer func() {
		if recover() == nil {
			err = fmt.Errorf("it did not panic")
		}
	}()
	var w *World
	w.Rank++
	return nil
}

// foreign: the library of another MPI than the launcher's.
func foreign() error {
	name := os.Getenv("TEST_GOCCL_LIBRARY")
	_, err := initialise(name)
	if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "counts 1 rank, and the launcher says ") {
		return fmt.Errorf("with %s: %v", name, err)
	}
	if _, again := initialise(""); again == nil || again.Error() != err.Error() {
		return fmt.Errorf("again: %v", again)
	}
	return finalise()
}

// dead: rank 0 is killed, and rank 1 gives up Finalize.
func dead() error {
	w, err := initialise("")
	if err != nil {
		return err
	}
	if w.Rank == 0 {
		p, err := os.FindProcess(os.Getpid())
		if err != nil {
			return err
		}
		return p.Kill()
	}
	ctx, stop := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer stop()
	said := "it ended"
	if err := Finalize(ctx); err != nil {
		said = err.Error()
	}
	return os.WriteFile(filepath.Join(os.Getenv("TEST_GOCCL_DIR"), "survivor"), []byte(said), 0o600)
}
