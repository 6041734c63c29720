package ddp_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/half"
)

func init() { works["mixed types"] = mixedTypes }

// The program of the guide: weights of bfloat16 and a norm of float32.
func TestModelOfTwoTypes(t *testing.T) {
	all(t, 2, func(rank int) error { return trainTwoTypes(bg, world(), rank) })
}

func trainTwoTypes(ctx context.Context, group *dist.ProcessGroup, rank int) error {
	weight, weightGrad := make([]half.BFloat16, 24), make([]half.BFloat16, 24)
	norm, normGrad := make([]float32, 8), make([]float32, 8)
	model, err := ddp.New(ctx, group, []ddp.Parameter{
		ddp.Param("layer.weight", weight, weightGrad, 8, 3), // of bfloat16, 8 rows of 3
		ddp.Param("layer.norm", norm, normGrad),             // of float32
	}, ddp.Options{})
	if err != nil {
		return err
	}
	weightGrad[23], normGrad[7] = half.NewBFloat16(float32(rank)), float32(rank)
	model.Ready(1)
	model.Ready(0)
	err = model.Wait(ctx)
	return errors.Join(err, equal("weight", weightGrad[23], half.NewBFloat16(0.5)), equal("norm", normGrad[7], 0.5),
		equal("buckets", model.Stats().Buckets, 2), equal("bytes", model.Stats().Bytes, 24*2+8*4), model.Close())
}

// A model of all types has exact means on goroutines and processes, in every mode: with gradients of
// its own and with views, accumulated, with unused parameters, with uneven inputs, and with hooks.
func TestMixedTypes(t *testing.T) { everywhere(t, "mixed types", 1, succeeded) }

func mixedTypes(rank, ranks int, _ *outcome) error {
	for _, views := range []bool{false, true} {
		for _, opts := range []ddp.Options{
			{}, {FirstBucketBytes: 1, BucketBytes: 1}, {FindUnused: true}, {StaticGraph: true},
			{Hooks: ddp.Hooks{Float32: ddp.BFloat16()}},
		} {
			if err := trainMixed(rank, ranks, views, opts); err != nil {
				return fmt.Errorf("views %v, options %+v: %w", views, opts, err)
			}
		}
	}
	return nil
}

// mixedTypesOf are the types of the parameters of a mixed model; the last float32 is reduced in place.
var mixedTypesOf = []ccl.DType{ccl.BFloat16, ccl.Float32, ccl.Float64, ccl.BFloat16, ccl.Float16, ccl.Float32, ccl.Float16}

func trainMixed(rank, ranks int, views bool, opts ddp.Options) error {
	lengths := []int{5, 3, 1, 0, 7, 70_000, 2}
	var model []variable
	var params []ddp.Parameter
	for i, d := range mixedTypesOf {
		model = append(model, newVariable(d, make([]float64, lengths[i])))
		params = append(params, model[i].parameter(fmt.Sprint(i), views))
	}
	mean := newVariable(ccl.Float64, []float64{float64(rank)})
	opts.Buffers, opts.BroadcastBuffers = []ddp.Tensor{mean.tensor("mean")}, true
	r, err := ddp.New(bg, world(), params, opts)
	if err != nil {
		return err
	}

	step := func(trains, sum float64, isAnew bool) error { // each rank brings its number, sum all of them
		put := func(i int, value float64) []float64 {
			g := make([]float64, lengths[i])
			for j := range g {
				g[j] = value
			}
			model[i].setGradient(r, i, g)
			return g
		}
		for i := range model {
			put(i, float64(rank))
		}
		for i := range model {
			switch {
			case i == 0: // accumulated
				if err := r.NoSync(func() error { r.Ready(0); return r.Wait(bg) }); err != nil {
					return err
				}
			case i == 4 && (opts.FindUnused || opts.StaticGraph): // ready nowhere
			case isAnew:
				model[i].readyAnew(r, i, put(i, float64(rank)))
			default:
				r.Ready(i)
			}
		}
		if err := r.Wait(bg); err != nil {
			return err
		}
		for i, d := range mixedTypesOf {
			want := newVariable(d, []float64{sum / trains}).values()[0]
			if i == 4 && (opts.FindUnused || opts.StaticGraph) {
				if want = float64(rank); views {
					want = 0
				}
			}
			if opts.Hooks.Float32 != nil && d == ccl.Float32 {
				want = newVariable(ccl.BFloat16, []float64{sum / trains}).values()[0]
			}
			for j, x := range model[i].gradient(r, i) {
				if math.Abs(x-want) > 1e-2*want {
					return fmt.Errorf("parameter %d of %v: element %d is %v, want %v", i, d, j, x, want)
				}
			}
		}
		return nil
	}
	whole := float64(ranks*(ranks-1)) / 2
	steps := func() error {
		return errors.Join(step(float64(ranks), whole, false), step(float64(ranks), whole, true), step(float64(ranks), whole, false))
	}
	err = errors.Join(steps(), r.Join(bg, func() error {
		err := step(float64(ranks), whole, false)
		if rank == 0 && ranks > 1 {
			return err
		}
		return errors.Join(err, step(float64(max(1, ranks-1)), whole, true)) // without rank 0, whose number is 0
	}), steps())
	return errors.Join(err, equal("buffer", mean.values()[0], 0), r.Verify(bg), r.Close())
}

// counting gives the mean, as without a hook, and counts the bytes.
type counting[T ddp.Float] struct{ bytes *int }

func (c counting[T]) Start(b *ddp.Bucket[T]) *ccl.Work {
	*c.bytes += len(b.Gradients) * ccl.DTypeOf[T]().Size()
	work := new(ccl.Work) // it has the error as well
	_ = ccl.AllReduce(context.Background(), b.Comm, b.Gradients, b.Gradients, b.Op, ccl.WithWork(work))
	return work
}

func (counting[T]) Finish(*ddp.Bucket[T]) error { return nil }

// A hook that is written once works for every type; a type without one gets the mean.
func TestHookOfSeveralTypes(t *testing.T) {
	all(t, 2, func(rank int) error {
		halves, floats, doubles := make([]half.BFloat16, 3), make([]float32, 4), make([]float64, 5)
		bytes := 0
		r, err := ddp.New(bg, world(), []ddp.Parameter{
			ddp.Param("a", make([]half.BFloat16, 3), halves), ddp.Param("b", make([]float32, 4), floats), ddp.Param("c", make([]float64, 5), doubles),
		}, ddp.Options{Hooks: ddp.Hooks{Float32: counting[float32]{&bytes}, BFloat16: counting[half.BFloat16]{&bytes}}})
		if err != nil {
			return err
		}
		halves[0], floats[0], doubles[0] = half.NewBFloat16(float32(rank)), float32(rank), float64(rank)
		for i := range 3 {
			r.Ready(i)
		}
		err = r.Wait(bg)
		return errors.Join(err, equal("bytes", bytes, 3*2+4*4), equal("a", halves[0].Float32(), 0.5), equal("b", floats[0], 0.5), equal("c", doubles[0], 0.5), r.Close())
	})
}

// notes is a hook that notes the type and the parameters of buckets as they are started.
type notes[T ddp.Float] struct{ started *[]string }

func (n notes[T]) Start(b *ddp.Bucket[T]) *ccl.Work {
	*n.started = append(*n.started, fmt.Sprint(ccl.DTypeOf[T](), b.Parameters))
	return startedBy(func(async ccl.CallOption) error {
		return ccl.AllReduce(bg, b.Comm, b.Gradients, b.Gradients, b.Op, async)
	})
}

func (notes[T]) Finish(*ddp.Bucket[T]) error { return nil }

// A bucket has gradients of one type. Buckets stand in the order in which their last gradients do.
func TestBucketsHaveOneType(t *testing.T) {
	all(t, 2, func(int) error {
		var started []string
		var params []ddp.Parameter
		for i := range 6 { // weights of bfloat16 and norms of float32, in turns, and a bias of float64
			if i%2 == 0 {
				params = append(params, ddp.Param(fmt.Sprint(i), make([]half.BFloat16, 8), nil))
			} else {
				params = append(params, ddp.Param(fmt.Sprint(i), make([]float32, 2), nil))
			}
		}
		params = append(params, ddp.Param("6", make([]float64, 1), nil))
		r, err := ddp.New(bg, world(), params, ddp.Options{FirstBucketBytes: 20, BucketBytes: 24, Hooks: ddp.Hooks{
			Float32: notes[float32]{&started}, Float64: notes[float64]{&started}, BFloat16: notes[half.BFloat16]{&started},
		}})
		if err != nil {
			return err
		}
		for i := range params {
			r.Ready(i)
		}
		err = r.Wait(bg)
		const want = "[bfloat16 [4 2] float32 [5 3 1] float64 [6] bfloat16 [0]]"
		return errors.Join(err, equal("buckets", fmt.Sprint(started), want), r.Close())
	})
}

// The norm is that of all gradients, whatever their types are, also where squares of float64 overflow.
func TestClipGradNormOfMixedTypes(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct{ halves, floats, doubles, limit, norm, clippedH, clippedF, clippedD float64 }{
		{1, 2, 2, 10, 3, 1, 2, 2},
		{1, 2, 2, 1.5, 3, 0.5, 1, 1},
		{1, 2, 1e200, 1e200, 1e200, 1, 2, 1e200},
		{1, 1 << 100, 1e200, 1e190, 1e200, 1.000444171950221e-10, 0x1p100 * 1e-10, 1e190},
		{1, 2, 3e-200, 10, math.Sqrt(5), 1, 2, 3e-200},
		{0, nan, 1e200, 1, nan, nan, nan, nan},
		{0, math.Inf(1), 1e200, 1, math.Inf(1), 0, nan, 0},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			all(t, 1, func(int) error {
				h, f, d := []half.BFloat16{half.NewBFloat16(float32(c.halves))}, []float32{float32(c.floats)}, []float64{c.doubles}
				r, err := ddp.New(bg, world(), []ddp.Parameter{
					ddp.Param("h", make([]half.BFloat16, 1), h), ddp.Param("f", make([]float32, 1), f), ddp.Param("d", make([]float64, 1), d),
				}, ddp.Options{})
				if err != nil {
					return err
				}
				norm, err := r.ClipGradNorm(c.limit)
				close := func(what string, got, want float64) error {
					if got == want || math.IsNaN(got) && math.IsNaN(want) || math.Abs(got-want) <= 1e-6*math.Abs(want) {
						return nil
					}
					return fmt.Errorf("%s is %v, want %v", what, got, want)
				}
				return errors.Join(err, close("norm", norm, c.norm), close("h", float64(h[0].Float32()), c.clippedH),
					close("f", float64(f[0]), c.clippedF), close("d", d[0], c.clippedD), r.Close())
			})
		})
	}
}

// A checkpoint has tensors of several types, each at a multiple of its element's length.
func TestCheckpointOfMixedTypes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c")
	all(t, 2, func(rank int) error {
		h, f, d := []half.Float16{half.NewFloat16(1.5)}, []float32{2.5, 3.5, 4.5}, []float64{math.Pi}
		b := []half.BFloat16{half.NewBFloat16(-2), half.NewBFloat16(7), half.NewBFloat16(8)}
		r, err := ddp.New(bg, world(), []ddp.Parameter{ddp.Param("h", h, nil), ddp.Param("f", f, nil, 3, 1)}, ddp.Options{Buffers: []ddp.Tensor{ddp.Buffer("d", d)}})
		if err != nil {
			return err
		}
		if err := r.Save(bg, path, 1, ddp.Buffer("b", b)); err != nil {
			return err
		}
		clear(h)
		clear(f)
		clear(d)
		clear(b)
		err = r.Load(bg, path, nil, ddp.Buffer("b", b))
		if err := errors.Join(err, equal("values", fmt.Sprint(h, f, d, b), "[1.5] [2.5 3.5 4.5] [3.141592653589793] [-2 7 8]")); err != nil {
			return err
		}
		foreign := r.Load(bg, path, nil, ddp.Buffer("b", make([]half.Float16, 3)))
		if !containsAll(fmt.Sprint(foreign), `its tensor "b" is BF16 [3], and "b" of the model is F16 [3]`) {
			return fmt.Errorf("another type: %w", foreign)
		}
		return r.Close()
	})
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var header map[string]struct {
		DType   string `json:"dtype"`
		Offsets [2]int `json:"data_offsets"`
	}
	require.NoError(t, json.NewDecoder(bytes.NewReader(text[8:8+binary.LittleEndian.Uint64(text)])).Decode(&header))
	size := map[string]int{"F64": 8, "F32": 4, "F16": 2, "BF16": 2}
	for _, name := range []string{"h", "f", "d", "b"} {
		require.Zero(t, header[name].Offsets[0]%size[header[name].DType], name)
	}
}

// Slices of the wrong type and tensors that no function has made are refused with their names.
func TestWrongTypes(t *testing.T) {
	all(t, 2, func(int) error {
		r, err := ddp.New(bg, world(), []ddp.Parameter{ddp.Param("w", make([]half.BFloat16, 2), nil)}, ddp.Options{})
		if err != nil {
			return err
		}
		for want, call := range map[string]func(){
			`ddp: Grad: parameter "w" is of bfloat16, and the gradient of float32`:                   func() { ddp.Grad[float32](r, 0) },
			"ddp: Grad: parameter 1 is asked for, and there are 1, numbered from 0 as New got them":  func() { ddp.Grad[half.BFloat16](r, 1) },
			"ddp: Grad: parameter -1 is asked for, and there are 1, numbered from 0 as New got them": func() { ddp.Grad[half.BFloat16](r, -1) },
		} {
			err := recovered(func() error { call(); return nil })
			if err := equal("panic", fmt.Sprint(err), "recovered: "+want); err != nil {
				return err
			}
		}
		ddp.ReadyGrad(r, 0, []float32{1, 2})
		r.Ready(0) // the step is completed
		mistake := r.Wait(bg)
		r.Ready(0)
		for _, err := range []error{r.Save(bg, filepath.Join(t.TempDir(), "c"), nil, ddp.Tensor{}), r.Load(bg, os.Args[0], nil, ddp.Tensor{})} {
			if _, ok := errors.AsType[*ccl.InvalidArgumentError](err); !ok { // within a step
				return err
			}
		}
		return errors.Join(equal("ReadyGrad", fmt.Sprint(mistake), `ddp: Ready: parameter "w" is of bfloat16, and the gradient of float32`), r.Wait(bg), r.Close())
	})
	path := filepath.Join(t.TempDir(), "c")
	for _, err := range append(saves(t, path, 1, ddp.Tensor{}), saves(t, path, 1, ddp.Buffer("w", []float32{1}))...) {
		require.ErrorAs(t, err, new(*ddp.CheckpointError))
	}

	w := func() ddp.Parameter { return ddp.Param("w", make([]float32, 2), nil) }
	for want, c := range map[string]struct {
		params []ddp.Parameter
		opts   ddp.Options
	}{
		"parameter 1 is the zero value: make it by Param or Buffer":                     {[]ddp.Parameter{w(), {}}, ddp.Options{}},
		"buffer 0 is the zero value: make it by Param or Buffer":                        {[]ddp.Parameter{w()}, ddp.Options{Buffers: []ddp.Tensor{{}}}},
		`parameter 0 and buffer 0 have the same name "w": give each its own`:            {[]ddp.Parameter{w()}, ddp.Options{Buffers: []ddp.Tensor{ddp.Buffer("w", []float64{1})}}},
		`buffer "b" has the shape [3] and 1 elements`:                                   {[]ddp.Parameter{w()}, ddp.Options{Buffers: []ddp.Tensor{ddp.Buffer("b", []float64{1}, 3)}}},
		"hooks are set for types that no parameter has":                                 {[]ddp.Parameter{w()}, ddp.Options{Hooks: ddp.Hooks{Float64: started{}}}},
		`parameter "w" has 1 elements, and its gradient 0`:                              {[]ddp.Parameter{ddp.Param("w", []float64{1}, []float64{})}, ddp.Options{}},
		`parameter 0 has the name "__metadata__", which checkpoints need: give it anot`: {[]ddp.Parameter{ddp.Param("__metadata__", []float64{1}, nil)}, ddp.Options{}},
	} {
		for _, err := range spawn(t, 2, func(int) error { _, err := ddp.New(bg, world(), c.params, c.opts); return err }) {
			require.ErrorAs(t, err, new(*ccl.InvalidArgumentError))
			require.ErrorContains(t, err, want)
		}
	}
}

// The buffers of a Reducer are those that New got, whatever becomes of the list that has them.
func TestListOfBuffersIsCopied(t *testing.T) {
	all(t, 2, func(rank int) error {
		first, second := []float32{0}, []float32{float32(rank)}
		opts := ddp.Options{BroadcastBuffers: true, Buffers: []ddp.Tensor{ddp.Buffer("first", first)}}
		r, g, err := three(opts, true)
		if err != nil {
			return err
		}
		opts.Buffers[0] = ddp.Buffer("second", second)
		first[0] = float32(rank + 3)
		err = readyAll(r, g)
		return errors.Join(err, equal("first", first[0], 3), equal("second", second[0], float32(rank)), r.Close())
	})
}

// uncomparable is a hook that == cannot compare.
type uncomparable[T ddp.Float] struct {
	counting[T]
	_ []int
}

// A list of parameters may be that of several Reducers, also at a time, and a hook of any type of Go.
func TestParametersOfTwoReducers(t *testing.T) {
	all(t, 2, func(rank int) error {
		bytes := 0
		h, f := make([]half.Float16, 2), make([]float32, 2)
		params := []ddp.Parameter{ddp.Param("h", h, nil), ddp.Param("f", f, nil)}
		opts := ddp.Options{Hooks: ddp.Hooks{Float16: uncomparable[half.Float16]{counting: counting[half.Float16]{&bytes}}}}
		first, err := ddp.New(bg, world(), params, opts)
		if err != nil {
			return err
		}
		second, err := ddp.New(bg, world(), params, ddp.Options{})
		if err != nil {
			return err
		}
		for i, r := range []*ddp.Reducer{first, second} {
			fresh := []float32{float32(rank + i), 0}
			ddp.Grad[half.Float16](r, 0)[1] = half.NewFloat16(float32(10*rank + i))
			ddp.ReadyGrad(r, 1, fresh)
			r.Ready(0)
			err := r.Wait(bg)
			if err := errors.Join(err, equal("h", ddp.Grad[half.Float16](r, 0)[1].Float32(), float32(5+i)), equal("f", fresh[0], 0.5+float32(i))); err != nil {
				return err
			}
		}
		return errors.Join(equal("bytes", bytes, 4), equal("first", ddp.Grad[half.Float16](first, 0)[1].Float32(), 5), first.Close(), second.Close())
	})
}
