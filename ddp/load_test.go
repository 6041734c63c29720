package ddp_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/test/golden"
)

// A file with other names, or with more or fewer tensors, is refused with a list of them, and
// loaded if the program allows it.
func TestLoadWith(t *testing.T) {
	texts := golden.Errors(t)
	path := filepath.Join(t.TempDir(), "c")
	saved(t, path, small)
	// What the model has beside "w" of 2 by 2.
	for name, c := range map[string]struct {
		shape  []int
		more   []string
		opts   ddp.LoadOptions
		want   string // the error
		u      ddp.Unmatched
		loaded int // elements of w
	}{
		"unexpected": {
			shape: []int{2, 2}, want: "the model has no tensor b, buffer (see LoadOptions)", u: ddp.Unmatched{Unexpected: []string{"b", "buffer"}},
		},
		"missing": {
			shape: []int{2, 2}, more: []string{"z", "buffer", "b", "a"}, want: "it has no tensor a, z (see LoadOptions)",
			u: ddp.Unmatched{Missing: []string{"a", "z"}}, opts: ddp.LoadOptions{AllowUnexpected: true},
		},
		"both": {
			shape: []int{2, 2}, more: []string{"a", "b"}, want: "it has no tensor a; the model has no tensor buffer (see LoadOptions)",
			u: ddp.Unmatched{Missing: []string{"a"}, Unexpected: []string{"buffer"}},
		},
		"allowed": {
			shape: []int{2, 2}, more: []string{"a", "b"}, loaded: 4,
			u: ddp.Unmatched{Missing: []string{"a"}, Unexpected: []string{"buffer"}}, opts: ddp.LoadOptions{AllowMissing: true, AllowUnexpected: true},
		},
		"one allowed": {
			shape: []int{2, 2}, more: []string{"a", "b"}, want: "the model has no tensor buffer (see LoadOptions)",
			u: ddp.Unmatched{Missing: []string{"a"}, Unexpected: []string{"buffer"}}, opts: ddp.LoadOptions{AllowMissing: true},
		},
		"names": {
			shape: []int{2, 2}, more: []string{"bias", "running"}, loaded: 4,
			opts: ddp.LoadOptions{Names: map[string]string{"bias": "b", "running": "buffer"}},
		},
		"one name of the file for two": {
			shape: []int{2, 2}, more: []string{"b", "tied", "buffer"}, loaded: 4,
			opts: ddp.LoadOptions{Names: map[string]string{"tied": "b"}},
		},
		"name that the model does not have": {
			shape: []int{2, 2}, more: []string{"b", "buffer"}, want: `LoadOptions.Names has the name "c", which no tensor of the model has`,
			opts: ddp.LoadOptions{Names: map[string]string{"c": "b"}},
		},
		"empty name in the file": {
			shape: []int{2, 2}, more: []string{"b", "buffer"}, want: "it has no tensor b; the model has no tensor b (see LoadOptions)",
			u:    ddp.Unmatched{Missing: []string{"b"}, Unexpected: []string{"b"}},
			opts: ddp.LoadOptions{Names: map[string]string{"b": ""}},
		},
		"name that the file does not have": {
			shape: []int{2, 2}, more: []string{"b", "buffer"}, want: "it has no tensor b; the model has no tensor b (see LoadOptions)",
			u:    ddp.Unmatched{Missing: []string{"b"}, Unexpected: []string{"b"}},
			opts: ddp.LoadOptions{Names: map[string]string{"b": "c"}},
		},
		"shape": {
			shape: []int{4}, more: []string{"b", "buffer"}, want: `its tensor "w" is F32 [2 2], and "w" of the model is F32 [4]`,
		},
		"mismatch beside missing": {
			shape: []int{4}, more: []string{"a", "b", "buffer"}, want: `it has no tensor a (see LoadOptions); its tensor "w" is F32 [2 2], and "w" of the model is F32 [4]`,
			u: ddp.Unmatched{Missing: []string{"a"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			all(t, 2, func(rank int) error {
				w := make([]float32, 4)
				var buffers []ddp.Tensor
				for _, name := range c.more {
					values := make([]float32, 1)
					if name == "buffer" || name == "running" {
						values = make([]float32, 2)
					}
					buffers = append(buffers, ddp.Buffer(name, values))
				}
				r, err := ddp.New(bg, world(), []ddp.Parameter{ddp.Param("w", w, nil, c.shape...)}, ddp.Options{Buffers: buffers})
				if err != nil {
					return err
				}
				var state progress
				u, err := r.LoadWith(bg, path, &state, c.opts)
				texts.Add(name, err)
				refused, _ := errors.AsType[*ddp.CheckpointError](err)
				if (refused == nil) != (c.want == "") || refused != nil && refused.Reason != c.want {
					return fmt.Errorf("the error is %w", err)
				}
				want := []float32{1, 2, 3, 4}
				clear(want[c.loaded:])
				return errors.Join(equal("unmatched", fmt.Sprint(u), fmt.Sprint(c.u)), equal("w", fmt.Sprint(w), fmt.Sprint(want)),
					equal("state", state.Step, c.loaded/2), r.Close())
			})
		})
	}
}

// A parameter whose shape in the file is the transposed one is named as that, and not loaded.
func TestLoadTransposed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c")
	file := fileOf(`{"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"kernel":{"dtype":"F32","shape":[1,2,3],"data_offsets":[24,48]}}`, make([]byte, 48)...)
	require.NoError(t, os.WriteFile(path, file, 0o600))
	all(t, 2, func(int) error {
		w, kernel := []float32{1, 2, 3, 4, 5, 6}, make([]float32, 6)
		r, err := ddp.New(bg, world(), []ddp.Parameter{ddp.Param("w", w, nil, 3, 2), ddp.Param("kernel", kernel, nil, 3, 1, 2)}, ddp.Options{})
		if err != nil {
			return err
		}
		err = r.Load(bg, path, nil)
		if refused, ok := errors.AsType[*ddp.CheckpointError](err); !ok || refused.Reason != `its tensor "w" is transposed: F32 [2 3], and "w" of the model is F32 [3 2] (the first of 2 that differ)` {
			return fmt.Errorf("the error is %w", err)
		}
		return errors.Join(equal("w", fmt.Sprint(w), "[1 2 3 4 5 6]"), r.Close())
	})
}

// Options that ranks do not share are refused on all, and nothing changes.
func TestLoadOptionsThatDiffer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c")
	saved(t, path, small)
	for name, c := range map[string]struct {
		opts ddp.LoadOptions // of rank 1
		want string
	}{
		"allowed": {ddp.LoadOptions{}, "rank 1: the model has no tensor buffer (see LoadOptions)"},
		"names": {
			ddp.LoadOptions{AllowUnexpected: true, AllowMissing: true, Names: map[string]string{"w": "v"}},
			`ranks disagree on tensor 0: "w", F32 [2 2], CRC 9eba690a on rank 0; none on rank 1`,
		},
	} {
		all(t, 2, func(rank int) error {
			w := make([]float32, 4)
			r, err := ddp.New(bg, world(), smallOf(w, make([]float32, 1)), ddp.Options{})
			if err != nil {
				return err
			}
			opts := ddp.LoadOptions{AllowUnexpected: true}
			if rank == 1 {
				opts = c.opts
			}
			_, err = r.LoadWith(bg, path, nil, opts)
			if refused, ok := errors.AsType[*ddp.CheckpointError](err); !ok || refused.Reason != c.want {
				return fmt.Errorf("%s: the error is %w", name, err)
			}
			return errors.Join(equal("w", fmt.Sprint(w), "[0 0 0 0]"), r.Close())
		})
	}
}

// floatBuffer makes a buffer in a program that knows of Float alone, as programs did before buffers
// had more types.
func floatBuffer[T ddp.Float](name string, data []T) ddp.Tensor { return ddp.Buffer(name, data) }

// infer reads the parameters of a checkpoint, and not the optimizer's tensors.
func infer(path string, w []float32) error {
	c, err := ddp.ReadCheckpoint(path)
	if err != nil {
		return err
	}
	_, err = c.Load(ddp.LoadOptions{AllowUnexpected: true}, ddp.Buffer("w", w, 2, 2))
	return err
}

// ReadCheckpoint gives a server the model and the state without a group, and without the tensors of
// an optimizer.
func TestReadCheckpoint(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c")
	saved(t, path, small)
	w := make([]float32, 4)
	require.NoError(t, infer(path, w))
	require.Equal(t, []float32{1, 2, 3, 4}, w)

	c, err := ddp.ReadCheckpoint(path)
	require.NoError(t, err)
	var state progress
	require.NoError(t, c.State(&state))
	require.Equal(t, progress{1, 2}, state)
	require.ErrorContains(t, c.State(state), "ddp: checkpoint "+path+": a ddp_test.progress is to become its state: pass a pointer")
	require.ErrorContains(t, c.State(nil), "a <nil> is to become its state: pass a pointer")
	require.ErrorContains(t, c.State((*progress)(nil)), "a *ddp_test.progress is to become its state: pass a pointer that is not nil")
	require.Equal(t, "pt", c.Metadata["format"])
	clear(c.Metadata) // it is the program's
	require.NoError(t, c.State(&state))

	clear(w)
	turned := ddp.Buffer("w", w, 4)
	for _, opts := range []ddp.LoadOptions{{}, {AllowUnexpected: true}} {
		_, err = c.Load(opts, floatBuffer("b", w[:1]), turned)
		require.ErrorContains(t, err, `its tensor "w" is F32 [2 2], and "w" of the model is F32 [4]`)
	}
	u, err := c.Load(ddp.LoadOptions{}, ddp.Buffer("w", w, 2, 2))
	require.ErrorContains(t, err, "ddp: checkpoint "+path+": the model has no tensor b, buffer (see LoadOptions)")
	require.Equal(t, ddp.Unmatched{Unexpected: []string{"b", "buffer"}}, u)
	_, err = c.Load(ddp.LoadOptions{AllowUnexpected: true}, ddp.Tensor{})
	require.ErrorContains(t, err, "a tensor is the zero value: make it by Buffer")
	require.Equal(t, make([]float32, 4), w)
	require.Empty(t, ddp.Tensor{}.Type())
	_, ok := ddp.Values[float32](ddp.Tensor{})
	require.False(t, ok)

	var none ddp.Checkpoint
	require.ErrorContains(t, none.State(&state), "it has no state")
	_, err = none.Load(ddp.LoadOptions{}, turned)
	require.ErrorContains(t, err, "it has no tensor w")

	file, err := os.ReadFile(path)
	require.NoError(t, err)
	file[len(file)-1] ^= 1
	require.NoError(t, os.WriteFile(path, file, 0o600))
	require.ErrorContains(t, infer(path, w), "its checksum is wrong")
}
