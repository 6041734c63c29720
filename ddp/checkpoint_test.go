package ddp_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccl/goccl/test/golden"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/half"
)

// progress is where a training was.
type progress struct{ Epoch, Step int }

// trained trains with momentum from a checkpoint, if there is one, to the last step, and returns the losses. It
// stops after so many steps of this run.
func trained(rank, ranks int, path string, stop int) (losses []float64, err error) {
	n := newNet[float64](uint64(rank))
	r, err := ddp.New(bg, world(), n.parameters(true), tiny())
	if err != nil {
		return nil, err
	}
	n.adopt(r)
	momentum := make([]float64, 3*width+1)
	optimizer := ddp.Buffer("momentum", momentum)
	var at progress
	if err := r.Load(bg, path, &at, optimizer); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	samples := batches(1, 50)[0]
	l := ddp.Loader[[][2]float64]{
		Sampler: ddp.Sampler{Samples: len(samples), Ranks: ranks, Rank: rank, Seed: 3}, Batch: 6,
		Load: loadOf(samples),
	}
	for ; at.Epoch < 3; at.Epoch, at.Step = at.Epoch+1, 0 {
		for b, err := range l.Epoch(bg, at.Epoch, at.Step) {
			if err != nil {
				return nil, err
			}
			if stop--; stop < 0 {
				return losses, errors.Join(r.Save(bg, path, at, optimizer), r.Close())
			}
			losses = append(losses, n.backward(b, 1, r.Ready))
			if err := r.Wait(bg); err != nil {
				return nil, err
			}
			i := 0
			for _, g := range n.grads {
				for j := range g {
					momentum[i] = 0.9*momentum[i] + g[j]
					g[j] = momentum[i]
					i++
				}
			}
			n.update(0.1)
			at.Step++
		}
	}
	return losses, r.Close()
}

// A training that goes on from checkpoints has the same losses, bit by bit.
func TestResume(t *testing.T) {
	const ranks = 2
	run := func(path string, stop int) (losses [ranks][]float64) {
		all(t, ranks, func(rank int) (err error) {
			losses[rank], err = trained(rank, ranks, path, stop)
			return err
		})
		return losses
	}
	want := run(filepath.Join(t.TempDir(), "none"), math.MaxInt)
	for _, stop := range []int{1, 3, 5, 7} {
		path := filepath.Join(t.TempDir(), "model.safetensors")
		var got [ranks][]float64
		for len(got[0]) < len(want[0]) {
			part := run(path, stop)
			for rank := range ranks {
				got[rank] = append(got[rank], part[rank]...)
			}
		}
		require.Equal(t, want, got)
	}
}

// saved writes a checkpoint and returns its bytes.
func saved(t *testing.T, path string, params func() []ddp.Parameter) []byte {
	all(t, 2, func(int) error {
		r, err := ddp.New(bg, world(), params(), ddp.Options{Buffers: bufferOf(make([]float32, 2))})
		if err != nil {
			return err
		}
		return errors.Join(r.Save(bg, path, progress{1, 2}), r.Close())
	})
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return b
}

func small() []ddp.Parameter { return smallOf([]float32{1, 2, 3, 4}, []float32{5}) }

// smallOf returns two parameters with these values.
func smallOf(w, b []float32) []ddp.Parameter {
	return []ddp.Parameter{ddp.Param("w", w, nil, 2, 2), ddp.Param("b", b, nil)}
}

// bufferOf returns a buffer with these values.
func bufferOf(values []float32) []ddp.Tensor { return []ddp.Tensor{ddp.Buffer("buffer", values)} }

// parametersOf returns parameters with the values of small's, or others.
type parametersOf func(w, b []float32) []ddp.Parameter

// load loads a checkpoint on two ranks, and returns their errors and rank 1's values.
func load(t *testing.T, path string, params parametersOf, state any) (errs []error, w, b []float32) {
	errs = make([]error, 2)
	all(t, 2, func(rank int) error {
		ws, bs := make([]float32, 4), make([]float32, 1)
		r, err := ddp.New(bg, world(), params(ws, bs), ddp.Options{Buffers: bufferOf([]float32{9, 9})})
		if err != nil {
			return err
		}
		if rank == 1 {
			w, b = ws, bs
			errs[1] = r.Load(bg, path, state)
		} else {
			errs[0] = r.Load(bg, path, new(progress))
		}
		return r.Close()
	})
	return errs, w, b
}

// What is torn, changed, foreign or of another model is refused on all ranks with the reason, and changes nothing.
func TestRefusedCheckpoints(t *testing.T) {
	texts := golden.Errors(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "c")
	good := saved(t, path, small)
	header := int(binary.LittleEndian.Uint64(good))
	data := 8 + header
	edit := func(f func(b []byte) []byte) []byte { return f(bytes.Clone(good)) }
	replaced := func(old, new string) []byte {
		h := bytes.Replace(good[8:data], []byte(old), []byte(new), 1)
		require.NotEqual(t, good[8:data], h)
		return append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(h))), h...), good[data:]...)
	}
	for name, c := range map[string]struct {
		file   []byte
		params parametersOf
		want   string
	}{
		"empty":      {nil, smallOf, "it ends too early"},
		"header cut": {good[:data-3], smallOf, "it ends too early"},
		"data cut":   {good[:len(good)-1], smallOf, "it ends too early"},
		"longer":     {append(bytes.Clone(good), 1, 2), smallOf, "2 bytes follow the tensors"},
		"text":       {[]byte("# a text, longer than eight bytes"), smallOf, "it is not a safetensors file"},
		"no JSON":    {edit(func(b []byte) []byte { b[8] = '['; return b }), smallOf, "it is not a safetensors file, or was changed: its header is no JSON ("},
		"bit":        {edit(func(b []byte) []byte { b[data+2] ^= 1; return b }), smallOf, "its checksum is wrong"},
		"state":      {replaced(`\"Epoch\":1`, `\"Epoch\":2`), smallOf, "its checksum is wrong"},
		"foreign":    {replaced("goccl.checkpoint", "other.checkpoint"), smallOf, "it has no state, since Save has not written it: pass nil in place of a pointer to one"},
		"version":    {replaced(`"goccl.checkpoint":"1"`, `"goccl.checkpoint":"2"`), smallOf, `it has version "2", and this program reads version 1`},
		"no tensor": {good, func(w, b []float32) []ddp.Parameter {
			return append(smallOf(w, b), ddp.Param("c", []float32{1}, nil))
		}, "it has no tensor c (see LoadOptions)"},
		"shape": {good, func(w, b []float32) []ddp.Parameter {
			return []ddp.Parameter{ddp.Param("w", w, nil), ddp.Param("b", b, nil)}
		}, `its tensor "w" is F32 [2 2], and "w" of the model is F32 [4]`},
		"type": {good, func(w, b []float32) []ddp.Parameter {
			return []ddp.Parameter{ddp.Param("w", make([]float64, 4), nil, 2, 2), ddp.Param("b", b, nil)}
		}, `its tensor "w" is F32 [2 2], and "w" of the model is F64 [2 2]`},
		"tensor": {good, func(w, b []float32) []ddp.Parameter { return smallOf(w, b)[:1] }, "the model has no tensor b (see LoadOptions)"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, "x")
			require.NoError(t, os.WriteFile(path, c.file, 0o600))
			var state progress
			errs, w, b := load(t, path, c.params, &state)
			for rank, err := range errs {
				var refused *ddp.CheckpointError
				require.ErrorAs(t, err, &refused, "rank %d", rank)
				require.Equal(t, path, refused.Path)
				require.ErrorContains(t, err, "ddp: checkpoint "+path+": "+c.want, "rank %d", rank)
				texts.Add(name, err)
			}
			require.Zero(t, state)
			require.Equal(t, make([]float32, 5), append(w, b...))
		})
	}
	errs, _, _ := load(t, filepath.Join(dir, "none"), smallOf, nil)
	require.ErrorIs(t, errs[0], fs.ErrNotExist)
	require.ErrorIs(t, errs[1], fs.ErrNotExist)

	var state progress
	errs, w, b := load(t, path, smallOf, &state)
	require.NoError(t, errors.Join(errs...))
	require.Equal(t, []float32{1, 2, 3, 4, 5}, append(w, b...))
	require.Equal(t, progress{1, 2}, state)
}

// If the files, tensors or states of ranks differ, all ranks refuse, name the rank and what differs, and change nothing.
func TestRanksThatDiffer(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "c")
	good := saved(t, path, small)
	file := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, b, 0o600))
		return path
	}
	other := filepath.Join(dir, "other")
	saved(t, other, func() []ddp.Parameter {
		return smallOf([]float32{1, 2, 3, 7}, []float32{5})
	})
	later := filepath.Join(dir, "later")
	all(t, 2, func(int) error {
		r, err := ddp.New(bg, world(), small(), ddp.Options{Buffers: bufferOf(make([]float32, 2))})
		if err != nil {
			return err
		}
		return errors.Join(r.Save(bg, later, progress{1, 3}), r.Close())
	})
	type named struct {
		Epoch int
		Step  string
	}
	for name, c := range map[string]struct {
		path  string // of rank 1
		state any    // of rank 1
		more  ddp.Tensor
		want  string
	}{
		"values": {path: other, want: `ranks disagree on tensor 0: "w", F32 [2 2], CRC 9eba690a on rank 0; "w", F32 [2 2], CRC 1e264c0c on rank 1`},
		"state":  {path: later, want: `ranks disagree on state: {"Epoch":1,"Step":2} on rank 0; {"Epoch":1,"Step":3} on rank 1`},
		"torn":   {path: file("torn", good[:len(good)-1]), want: "rank 1: it ends too early"},
		"absent": {path: filepath.Join(dir, "none"), want: "ranks disagree on file: it exists on rank 0; it does not exist on rank 1"},
		"tensor": {path: path, more: ddp.Buffer("m", []float32{9}), want: "rank 1: it has no tensor m (see LoadOptions)"},
		"type":   {path: path, state: &named{5, "five"}, want: `rank 1: its state: its field "Step" is a number, and the program reads it into a value of type string: pass a pointer to the type that was written`},
		"value":  {path: path, state: named{5, "five"}, want: "rank 1: a ddp_test.named is to become its state: pass a pointer that is not nil to a value of the type that was saved"},
	} {
		t.Run(name, func(t *testing.T) {
			errs := make([]error, 2)
			all(t, 2, func(rank int) error {
				w, buffer, more := make([]float32, 4), []float32{9, 9}, []ddp.Tensor(nil)
				before := progress{5, 6}
				state, path := any(&before), path
				if rank == 1 {
					path = c.path
					if c.state != nil {
						state = c.state
					}
					if name == "tensor" {
						more = append(more, c.more)
					}
				}
				r, err := ddp.New(bg, world(), smallOf(w, make([]float32, 1)), ddp.Options{Buffers: bufferOf(buffer)})
				if err != nil {
					return err
				}
				errs[rank] = r.Load(bg, path, state, more...)
				return errors.Join(equal("state", before, progress{5, 6}), equal("buffer", buffer[1], 9), equal("w", fmt.Sprint(w), "[0 0 0 0]"), r.Close())
			})
			for rank, err := range errs {
				var refused *ddp.CheckpointError
				require.ErrorAs(t, err, &refused, "rank %d", rank)
				require.ErrorContains(t, err, c.want, "rank %d", rank)
				require.NotErrorIs(t, err, fs.ErrNotExist, "rank %d", rank)
			}
			if strings.HasPrefix(c.want, "ranks disagree") {
				var differ *ccl.MismatchError
				require.ErrorAs(t, errs[0], &differ)
				require.ErrorAs(t, errs[1], &differ)
			}
			if c.state != nil {
				require.Contains(t, fmt.Sprint(c.state), "{5 five}")
			}
		})
	}
}

// The state becomes what was saved: nothing of the value before is left in it.
func TestStateIsReplaced(t *testing.T) {
	type state struct {
		Epoch int `json:",omitempty"`
		Names map[string]int
	}
	path := filepath.Join(t.TempDir(), "c")
	all(t, 2, func(int) error {
		r, err := ddp.New(bg, world(), small(), ddp.Options{})
		if err != nil {
			return err
		}
		if err := r.Save(bg, path, state{0, map[string]int{"a": 1}}); err != nil {
			return err
		}
		s := state{7, map[string]int{"b": 2}}
		err = r.Load(bg, path, &s)
		return errors.Join(err, equal("state", fmt.Sprint(s), fmt.Sprint(state{0, map[string]int{"a": 1}})), r.Close())
	})
}

// A checkpoint that cannot be written is an error on all ranks and leaves the one before.
func TestCheckpointNotWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c")
	good := saved(t, path, small)
	for name, c := range map[string]struct {
		path  string
		state any
		more  ddp.Tensor
		want  string
	}{
		"no folder": {filepath.Join(path, "x"), 1, ddp.Buffer[float32]("m", nil), "not a directory"},
		"state":     {path, func() {}, ddp.Buffer[float32]("m", nil), "rank 0: the state: it has a func(), which JSON does not have: leave the field out, by the tag `json:\"-\"`, or give"},
		"name":      {path, 1, ddp.Buffer[float32]("w", nil), `two tensors have the name "w"`},
	} {
		t.Run(name, func(t *testing.T) {
			all(t, 2, func(rank int) error {
				r, err := ddp.New(bg, world(), small(), ddp.Options{})
				if err != nil {
					return err
				}
				err = r.Save(bg, c.path, c.state, c.more)
				var failed *ddp.CheckpointError
				if !errors.As(err, &failed) || !strings.Contains(err.Error(), c.want) {
					return fmt.Errorf("rank %d: got %w", rank, err)
				}
				return r.Close()
			})
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, good, b)
			files, err := os.ReadDir(filepath.Dir(path))
			require.NoError(t, err)
			require.Len(t, files, 1)
		})
	}
}

// All types of gradients have checkpoints.
func TestCheckpointTypes(t *testing.T) {
	every(t, []half.Float16{half.NewFloat16(1.5), half.NewFloat16(-2)})
	every(t, []half.BFloat16{half.NewBFloat16(1.5), half.NewBFloat16(-2)})
	every(t, []float32{1.5, float32(math.Inf(1))})
	every(t, []float64{math.Pi, math.Copysign(0, -1)})
}

func every[T ddp.Float](t *testing.T, values []T) {
	path := filepath.Join(t.TempDir(), "c")
	all(t, 2, func(rank int) error {
		data := append([]T(nil), values...)
		r, err := ddp.New(bg, world(), []ddp.Parameter{ddp.Param("v", data, nil)}, ddp.Options{})
		if err != nil {
			return err
		}
		if err := r.Save(bg, path, nil); err != nil {
			return err
		}
		clear(data)
		if err := r.Load(bg, path, nil); err != nil {
			return err
		}
		return errors.Join(equal("values", fmt.Sprint(data), fmt.Sprint(values)), r.Close())
	})
}
