package ddp_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ddp"
)

func init() {
	works["save while training goes on"] = saveWhileTrainingGoesOn
	works["errors of files written beside"] = errorsOfFilesWrittenBeside
	works["latest"] = loadLatest
}

// momentumNet is a parameter with state of the optimizer and a buffer.
type momentumNet struct {
	*ddp.Reducer
	weight, counter []float64
	momentum        [][]float64
}

func newMomentumNet(opts ddp.Options) (n *momentumNet, err error) {
	n = &momentumNet{weight: []float64{1, 2, 3, 4, 5, 6, 7}, counter: []float64{0}}
	opts.Buffers = []ddp.Tensor{ddp.Buffer("counter", n.counter)}
	if n.Reducer, err = ddp.New(bg, world(), []ddp.Parameter{ddp.Param("weight", n.weight, nil)}, opts); err != nil {
		return nil, err
	}
	n.momentum, err = ddp.NewOptimizerState[float64](n.Reducer, "momentum")
	return n, err
}

func (n *momentumNet) train() error {
	copy(ddp.Grad[float64](n.Reducer, 0), n.weight)
	n.Ready(0)
	if err := n.Wait(bg); err != nil {
		return err
	}
	n.counter[0]++
	return ddp.Step(bg, n.Reducer, func(p ddp.Part[float64]) {
		m := n.momentum[p.Parameter]
		for i, g := range p.Gradient {
			m[i] = m[i]/2 + g
			p.Values[i] -= m[i] / 4
		}
	})
}

func (n *momentumNet) text() string { return fmt.Sprint(n.weight, n.counter, n.momentum) }

// A file of SaveAsync has what the training had then, also if it is written after more steps, and is
// loaded as one of Save: the training goes on with the same bits. Jobs under seeds write it when the
// seed says.
func TestSaveWhileTrainingGoesOn(t *testing.T) {
	t.Setenv("TEST_DDP_DIR", t.TempDir())
	everywhere(t, "save while training goes on", 1, succeeded)
}

func saveWhileTrainingGoesOn(rank, _ int, _ *outcome) error {
	for _, shard := range []bool{false, true} {
		n, err := newMomentumNet(ddp.Options{Shard: shard})
		if err != nil {
			return err
		}
		path := filepath.Join(os.Getenv("TEST_DDP_DIR"), "c")
		err = errors.Join(n.train(), n.train())
		then := n.text()
		more := []int32{1}
		work, saved := n.SaveAsync(bg, path, progress{1, 2}, ddp.Buffer("more", more))
		more[0] = 2
		if err := errors.Join(err, saved, n.train(), n.train()); err != nil {
			return err
		}
		later := n.text()
		if err := errors.Join(work.Wait(bg), work.Wait(bg), equal("the training", n.text(), later)); err != nil {
			return err
		}

		var at progress
		err = n.Load(bg, path, &at, ddp.Buffer("more", more))
		err = errors.Join(err, equal("state", at, progress{1, 2}), equal("loaded", n.text(), then), equal("more", more[0], 1),
			n.train(), n.train(), equal("trained", n.text(), later))
		if rank == 0 {
			err = errors.Join(err, os.Remove(path))
		}
		_, saved = n.SaveAsync(bg, path, 3)
		err = errors.Join(err, saved, n.Close())
		if rank == 0 {
			_, absent := os.Stat(path)
			err = errors.Join(err, absent)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Files are written in the order of the calls.
func TestSaveAsyncInTurn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c")
	all(t, 2, func(int) error {
		r, err := ddp.New(bg, world(), small(), ddp.Options{})
		if err != nil {
			return err
		}
		for i := range 5 {
			_, err := r.SaveAsync(bg, path, i)
			if err != nil {
				return err
			}
		}
		var last int
		err = r.Load(bg, path, &last)
		return errors.Join(err, equal("state", last, 4), r.Close())
	})
}

// The error of a file that cannot be written comes from Wait, or once from the next call, on all
// ranks, and from Close of rank 0. The group lives on.
func TestErrorsOfFilesWrittenBeside(t *testing.T) {
	t.Setenv("TEST_DDP_DIR", t.TempDir())
	everywhere(t, "errors of files written beside", 1, succeeded)
}

func errorsOfFilesWrittenBeside(rank, _ int, _ *outcome) error {
	n, err := newMomentumNet(ddp.Options{})
	if err != nil {
		return err
	}
	dir := os.Getenv("TEST_DDP_DIR")
	good, none := filepath.Join(dir, "good"), filepath.Join(dir, "none", "c")
	isFailure := func(what string, err error) error {
		failed, ok := errors.AsType[*ddp.CheckpointError](err)
		if !ok || failed.Path != none || !containsAll(failed.Reason, "open "+none+": no such file or directory") {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	}

	for _, c := range []struct {
		what string
		next func(*ddp.SaveWork) error
	}{
		{"Wait", func(w *ddp.SaveWork) error { return w.Wait(bg) }},
		{"Save", func(*ddp.SaveWork) error { return n.Save(bg, good, 1) }},
		{"SaveAsync", func(*ddp.SaveWork) error {
			_, err := n.SaveAsync(bg, good, 1)
			return err
		}},
		{"Load", func(*ddp.SaveWork) error { return n.Load(bg, good, nil) }},
		{"LoadLatest", func(*ddp.SaveWork) error {
			_, err := n.LoadLatest(bg, dir, nil)
			return err
		}},
		{"Join", func(*ddp.SaveWork) error {
			return n.Join(bg, func() error { return errors.New("train was called") })
		}},
	} {
		work, err := n.SaveAsync(bg, none, 1)
		if err != nil {
			return err
		}
		err = errors.Join(isFailure(c.what, c.next(work)), isFailure("Wait after "+c.what, work.Wait(bg)), n.train(), n.Save(bg, good, 1))
		if err != nil {
			return err
		}
	}

	inJoin := n.Join(bg, func() error {
		_, err := n.SaveAsync(bg, good, 1)
		if invalid, ok := errors.AsType[*ccl.InvalidArgumentError](err); !ok || invalid.Operation != "ddp.SaveAsync" {
			return fmt.Errorf("SaveAsync within Join: %w", err)
		}
		return nil
	})
	work, err := n.SaveAsync(bg, none, 1)
	if err := errors.Join(inJoin, err); err != nil {
		return err
	}
	err = n.Close()
	if rank > 0 {
		return errors.Join(err, equal("Wait after Close", errors.Is(work.Wait(bg), ccl.ErrClosed), true))
	}
	return errors.Join(isFailure("Close", err), isFailure("Wait after Close", work.Wait(bg)), n.Close())
}

// touch writes a file whose last change was so many seconds after some time.
func touch(t *testing.T, path string, contents []byte, seconds int) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, contents, 0o600))
	at := time.Unix(1_000_000_000+int64(seconds), 0)
	require.NoError(t, os.Chtimes(path, at, at))
}

// Latest returns the newest whole file of Save, and says why newer ones are passed over.
func TestLatest(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	_, _, err := ddp.Latest(path("none"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, os.WriteFile(path("loss.csv"), nil, 0o600))
	require.NoError(t, os.Mkdir(path("d.safetensors"), 0o700))
	foreign, err := ddp.WriteBytes(nil)
	require.NoError(t, err)
	foreign = bytes.ReplaceAll(foreign, []byte("goccl."), []byte("other."))
	touch(t, path("model.safetensors"), foreign, 9)
	_, passed, err := ddp.Latest(dir)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.EqualError(t, err, "ddp: checkpoint "+dir+": it has no checkpoint")
	require.Len(t, passed, 1)
	require.EqualError(t, passed[0], "ddp: checkpoint "+path("model.safetensors")+": Save has not written it")

	good := saved(t, path("saved"), small)
	torn := good[:len(good)-1]
	changed := append(slices.Clone(torn), good[len(good)-1]^1)
	touch(t, path("s-10.safetensors"), torn, 7)
	touch(t, path("s-11.safetensors"), changed, 8)
	_, passed, err = ddp.Latest(dir)
	require.NotErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "ddp: checkpoint "+dir+": none of its files is whole: s-11.safetensors: its checksum is wrong")
	require.ErrorContains(t, err, "s-10.safetensors: it ends too early")
	require.Len(t, passed, 3)

	touch(t, path("s-8.safetensors"), good, 6)
	touch(t, path("s-9.safetensors"), good, 5)
	found, passed, err := ddp.Latest(dir)
	require.NoError(t, err)
	require.Equal(t, path("s-8.safetensors"), found)
	require.Len(t, passed, 3)
	require.Equal(t, path("s-11.safetensors"), passed[1].Path)

	touch(t, path("s-100.safetensors"), good, 6) // on a coarse clock
	found, _, err = ddp.Latest(dir)
	require.NoError(t, err)
	require.Equal(t, path("s-100.safetensors"), found)
}

// All ranks load the file that rank 0 finds, or get the same error.
func TestLoadLatest(t *testing.T) {
	t.Setenv("TEST_DDP_DIR", t.TempDir())
	everywhere(t, "latest", 1, succeeded)
}

func loadLatest(rank, ranks int, _ *outcome) error {
	warned := make(warnings, 100)
	n, err := newMomentumNet(ddp.Options{Logger: slog.New(warned)})
	if err != nil {
		return err
	}
	dir := filepath.Join(os.Getenv("TEST_DDP_DIR"), fmt.Sprint(ranks))
	if rank == 0 {
		if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)); err != nil {
			return err
		}
	}

	at := progress{7, 7}
	file, err := n.LoadLatest(bg, dir, &at)
	if !errors.Is(err, fs.ErrNotExist) || file != "" || at != (progress{7, 7}) {
		return fmt.Errorf("no file: %q, %w", file, err)
	}
	second := filepath.Join(dir, "s-2.safetensors")
	err = errors.Join(n.Save(bg, filepath.Join(dir, "s-1.safetensors"), progress{1, 1}), n.train(), n.Save(bg, second, progress{2, 2}))
	then := n.text()
	if rank == 0 {
		time := time.Now().Add(time.Hour)
		torn := filepath.Join(dir, "s-3.safetensors")
		err = errors.Join(err, os.WriteFile(torn, []byte("torn"), 0o600), os.Chtimes(torn, time, time))
	}
	err = errors.Join(err, n.train())
	file, failed := n.LoadLatest(bg, dir, &at)
	err = errors.Join(err, failed, equal("file", file, second), equal("state", at, progress{2, 2}), equal("loaded", n.text(), then))
	if rank == 0 {
		err = errors.Join(err, equal("warning", <-warned, "a checkpoint was passed over path="+filepath.Join(dir, "s-3.safetensors")+
			" reason=it ends too early: it was not written to its end"), os.Remove(file), os.Remove(filepath.Join(dir, "s-1.safetensors")))
	}

	_, broken := n.LoadLatest(bg, dir, &at)
	refused, ok := errors.AsType[*ddp.CheckpointError](broken)
	if !ok || errors.Is(broken, fs.ErrNotExist) || refused.Path != dir || !containsAll(refused.Reason, "none of its files is whole: s-3.safetensors") {
		err = errors.Join(err, fmt.Errorf("no whole file: %w", broken))
	}
	return errors.Join(err, n.Close())
}

// As many checkpoints remain as the program wants, of those that differ in the number alone.
func TestKeepCheckpoints(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	good := saved(t, path("best.safetensors"), small)
	for i, name := range []string{"step-1.safetensors", "epoch-1.safetensors", "step-1.bin", "step-2.safetensors"} {
		touch(t, path(name), good, i)
	}
	touch(t, path("step-3.safetensors"), good[:100], 3) // torn: it takes no other's place
	all(t, 2, func(int) error {
		r, err := ddp.New(bg, world(), small(), ddp.Options{Buffers: bufferOf(make([]float32, 2)), KeepCheckpoints: 2})
		if err != nil {
			return err
		}
		_, failed := r.SaveAsync(bg, path("step-4.safetensors"), 4)
		return errors.Join(failed, r.Save(bg, path("best.safetensors"), 4), r.Save(bg, path("step-5.safetensors"), 5), r.Close())
	})
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	require.Equal(t, []string{"best.safetensors", "epoch-1.safetensors", "step-1.bin", "step-3.safetensors", "step-4.safetensors", "step-5.safetensors"}, names)
}

// A clock that was set back does not make an earlier checkpoint the newest, and the latest are kept.
func TestCheckpointsAfterTheClockWasSetBack(t *testing.T) {
	dir := t.TempDir()
	path := func(i int) string { return filepath.Join(dir, fmt.Sprintf("step-%d.safetensors", i)) }
	saved(t, path(1), small)
	ahead := time.Now().Add(time.Hour)
	require.NoError(t, os.Chtimes(path(1), ahead, ahead))
	all(t, 2, func(int) error {
		r, err := ddp.New(bg, world(), small(), ddp.Options{Buffers: bufferOf(make([]float32, 2)), KeepCheckpoints: 2})
		if err != nil {
			return err
		}
		first := r.Save(bg, path(2), 2)
		_, second := r.SaveAsync(bg, path(3), 3)
		return errors.Join(first, second, r.Save(bg, path(4), 4), r.Close())
	})
	latest, passed, err := ddp.Latest(dir)
	require.NoError(t, err)
	require.Equal(t, path(4), latest)
	require.Empty(t, passed)
	require.FileExists(t, path(3))
	require.NoFileExists(t, path(1))
	require.NoFileExists(t, path(2))
}

// Jobs that share a directory, such as an old one that has not ended yet, remove the same files.
func TestKeepCheckpointsTogether(t *testing.T) {
	dir := t.TempDir()
	path := func(i int) string { return filepath.Join(dir, fmt.Sprintf("step-%d.safetensors", i)) }
	good := saved(t, path(0), small)
	for i := range 200 {
		touch(t, path(i), good, i)
	}
	errs := make(chan error)
	for range 8 {
		go func() { errs <- ddp.RemoveOlder(path(199), 2) }()
	}
	for range 8 {
		require.NoError(t, <-errs)
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 2)
}
