package ddp_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ddp"
)

// saves writes a checkpoint of small on two ranks, and returns the error of each.
func saves(t *testing.T, path string, state any, more ...ddp.Tensor) []error {
	t.Helper()
	errs := make([]error, 2)
	all(t, 2, func(rank int) error {
		r, err := ddp.New(bg, world(), small(), ddp.Options{})
		if err != nil {
			return err
		}
		errs[rank] = r.Save(bg, path, state, more...)
		return r.Close()
	})
	return errs
}

// The error of a file that cannot be made names it, and not the temporary one.
func TestCheckpointNowhere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none", "c")
	for _, err := range saves(t, path, 1) {
		require.ErrorContains(t, err, "open "+path+": no such file or directory: make the directory "+filepath.Dir(path))
	}
}

// A checkpoint has the mode of the file that it replaces, and replaces the file behind a link.
func TestCheckpointBehindLink(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c")
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.NoError(t, os.Symlink(path, link))
	require.NoError(t, errors.Join(saves(t, link, 1)...))
	info, err := os.Lstat(path)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode())
	require.NotZero(t, info.Size())
	require.NoError(t, errors.Join(saves(t, filepath.Join(t.TempDir(), strings.Repeat("c", 255)), 1)...))
}

// What Load would refuse is refused by Save, on all ranks, and the file before stays.
func TestSaveOfWhatLoadRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c")
	good := saved(t, path, small)
	for want, c := range map[string]struct {
		state any
		more  ddp.Tensor
	}{
		"and at most 100000000 are possible: save what is large as a Buffer": {strings.Repeat("x", 100_000_000), ddp.Buffer[float32]("m", nil)},
		`the name "m\xff" of a tensor is not UTF-8`:                          {1, ddp.Buffer[float32]("m\xff", nil)},
		`the tensor "m" has the shape [2 -1] and 3 elements`:                 {1, ddp.Buffer("m", make([]float32, 3), 2, -1)},
		`the tensor "m" has the shape [-1 -1] and 1 elements`:                {1, ddp.Buffer("m", make([]float32, 1), -1, -1)},
	} {
		for rank, err := range saves(t, path, c.state, c.more) {
			var failed *ddp.CheckpointError
			require.ErrorAs(t, err, &failed, "rank %d", rank)
			require.ErrorContains(t, err, want, "rank %d", rank)
		}
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, good, b)
	}
}

// losses is a state with floats in all places where JSON has them.
type losses struct {
	Best    float64
	History []float32
	Of      map[string]*float64
	Pair    [2]float64 `json:"pair"`
	Nested  struct{ Worst float32 }
	Name    string
	Step    int
	Any     any
	hidden  float64
}

// Infinities and NaN in the state are read back, wherever encoding/json finds floats; strings like
// theirs stay strings.
func TestStateOfInfinities(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c")
	worst := math.Inf(-1)
	state := losses{
		Best: math.Inf(1), History: []float32{1, float32(math.NaN()), float32(math.Inf(1))}, Of: map[string]*float64{"a": &worst, "b": nil},
		Pair: [2]float64{math.NaN(), 2}, Name: "NaN", Step: 16777216, Any: math.Inf(1), hidden: math.NaN(),
	}
	state.Nested.Worst = float32(math.Inf(-1))
	for name, saved := range map[string]any{"value": state, "pointer": &state} {
		require.NoError(t, errors.Join(saves(t, path, saved)...), name)
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Contains(t, string(text), `\"Best\":\"Infinity\",\"History\":[1,\"NaN\",\"Infinity\"],\"Of\":{\"a\":\"-Infinity\",\"b\":null},\"pair\":[\"NaN\",2]`, name)
		all(t, 2, func(int) error {
			r, err := ddp.New(bg, world(), small(), ddp.Options{})
			if err != nil {
				return err
			}
			var got losses
			err = r.Load(bg, path, &got)
			want := state
			want.hidden, want.Any = 0, "Infinity"
			return errors.Join(err, equal("a", *got.Of["a"], worst), equal("b", got.Of["b"], nil),
				equal("the rest", fmt.Sprint(withoutPointers(got)), fmt.Sprint(withoutPointers(want))), r.Close())
		})
	}
	require.Equal(t, math.Inf(1), state.Best, "Save changes the state")

	var best float64
	require.NoError(t, errors.Join(saves(t, path, math.Inf(-1))...))
	all(t, 2, func(rank int) error {
		r, err := ddp.New(bg, world(), small(), ddp.Options{})
		if err != nil {
			return err
		}
		read := new(float64)
		if err = r.Load(bg, path, read); rank == 0 {
			best = *read
		}
		return errors.Join(err, r.Close())
	})
	require.Equal(t, math.Inf(-1), best)
}

func withoutPointers(l losses) losses {
	l.Of = nil
	return l
}

// A state whose infinities JSON cannot have is refused, whatever leads back to itself in it as
// well.
func TestStateThatCannotBeWritten(t *testing.T) {
	type ring struct {
		Value float64
		Next  *ring
		Other map[string]*ring
	}
	circle := &ring{Value: math.NaN()}
	circle.Next, circle.Other = circle, map[string]*ring{"a": circle}
	for want, state := range map[string]any{
		"encountered a cycle":    circle,
		"unsupported value: NaN": marshaler(math.NaN()),
		"the state: encoding a ddp_test.thrower panicked: encode": thrower{},
		"the option string of its tag": struct {
			Best float64 `json:",string"`
		}{math.Inf(1)},
	} {
		for _, err := range saves(t, filepath.Join(t.TempDir(), "c"), state) {
			require.ErrorContains(t, err, want)
		}
	}
}

// marshaler is a float that encodes itself.
type marshaler float64

func (m marshaler) MarshalJSON() ([]byte, error) { return nil, errors.New("unsupported value: NaN") }

// thrower is a state whose methods panic.
type thrower struct{}

func (thrower) MarshalJSON() ([]byte, error) { panic("encode") }
func (*thrower) UnmarshalJSON([]byte) error  { panic("decode") }

// A panic of a state's method on one rank is an error on all: the others wait for it without a
// deadline.
func TestStateThatPanics(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c")
	require.NoError(t, errors.Join(saves(t, path, 1)...))
	all(t, 2, func(rank int) error {
		r, err := ddp.New(bg, world(), small(), ddp.Options{})
		if err != nil {
			return err
		}
		err = r.Load(bg, path, []any{new(int), new(thrower)}[rank])
		if refused, ok := errors.AsType[*ddp.CheckpointError](err); !ok || refused.Reason != "rank 1: its state: decoding a ddp_test.thrower panicked: decode" {
			return fmt.Errorf("Load: %w", err)
		}
		return r.Close()
	})
}

// loadInto saves a state and returns what Load reads into the value of another type.
func loadInto[T any](t *testing.T, state any) (got T) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "c")
	require.NoError(t, errors.Join(saves(t, path, state)...))
	all(t, 2, func(rank int) error {
		r, err := ddp.New(bg, world(), small(), ddp.Options{})
		if err != nil {
			return err
		}
		read := new(T)
		if err = r.Load(bg, path, read); rank == 0 {
			got = *read
		}
		return errors.Join(err, r.Close())
	})
	return got
}

type common struct{ Best, Worst float64 }

// Fields that a state has from a struct which is embedded and not exported are written and read back
// like others.
func TestStateOfInfinitiesInAnEmbeddedStruct(t *testing.T) {
	type flat struct{ Best, Worst float64 }
	type embeds struct {
		common
		Step int
	}
	infinite := common{math.Inf(1), math.Inf(-1)}
	state := embeds{infinite, 3}
	require.Equal(t, state, loadInto[embeds](t, state))
	require.Equal(t, embeds{infinite, 3}, state, "Save changes the state")
	require.Equal(t, flat(infinite), loadInto[flat](t, state))
	require.Equal(t, embeds{infinite, 0}, loadInto[embeds](t, flat(infinite)))
}

// passes counts how often a state is decoded.
type passes struct{}

var decoded atomic.Int64

func (passes) MarshalJSON() ([]byte, error) { return []byte("0"), nil }

func (*passes) UnmarshalJSON([]byte) error {
	decoded.Add(1)
	return nil
}

// The number of passes over a state does not depend on how many infinities a list in it has.
func TestStateOfManyInfinities(t *testing.T) {
	type state struct {
		Passes  passes
		History [][]float64
		Names   []string
		Pair    map[string]float64
		Any     []any
	}
	var want state
	row := []float64{math.Inf(1), 0.5, math.Inf(-1), math.Inf(1)}
	for range 500 {
		row = append(row, math.Inf(1), -1e-30)
	}
	want.History = [][]float64{row, {2, math.Inf(-1)}, {}, {math.Inf(1)}}
	want.Names = []string{"NaN", "Infinity"}
	want.Pair = map[string]float64{"Infinity": 1, "a": math.Inf(1)}
	want.Any = []any{"NaN", "NaN"}
	decoded.Store(0)
	require.Equal(t, want, loadInto[state](t, want))
	require.LessOrEqual(t, decoded.Load(), int64(20), "on two ranks")
}

// An empty path, such as that of a flag that is not set, is an error of Save and Load: no file that
// does not exist, with which a program would train anew.
func TestEmptyPath(t *testing.T) {
	all(t, 2, func(int) error {
		r, err := ddp.New(bg, world(), small(), ddp.Options{})
		if err != nil {
			return err
		}
		for whose, err := range map[string]error{"rank 0: ": r.Save(bg, "", nil), "": r.Load(bg, "", nil)} {
			if errors.Is(err, fs.ErrNotExist) || fmt.Sprint(err) != "ddp: checkpoint : "+whose+"the path of the file is empty" {
				return fmt.Errorf("got %w", err)
			}
		}
		return r.Close()
	})
}
