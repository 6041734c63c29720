package ddp

import (
	"context"
	"fmt"
	"strings"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/half"
)

// Float is the set of types that gradients have.
type Float interface {
	float32 | float64 | half.Float16 | half.BFloat16
}

// Parameter is a tensor that is trained. Data and Grad have memory of their own: New refuses those that overlap any other
// Data, Grad or buffer, of this rank or of another rank that is a goroutine of this process.
type Parameter[T Float] struct {
	Name  string
	Shape []int // extents; nil: one dimension
	Data  []T   // the values, row-major
	Grad  []T   // as long as Data; nil for all parameters: New makes them, see Reducer.Grad and Reducer.ReadyGrad
}

// description is what all ranks must have in common.
type description struct {
	Wrong      string // why this rank's arguments are wrong, or ""
	Debug      bool
	Views      bool
	Options    string
	Parameters []declared
	Buffers    []int // lengths
	Process    string
	Memory     []memory
}

type declared struct {
	Name  string
	Type  string
	Shape []int
}

func (d declared) String() string { return fmt.Sprintf("%q, %s %d", d.Name, d.Type, d.Shape) }

// describe returns what this rank brings, or why it is wrong.
func describe[T Float](params []Parameter[T], opts *Options[T]) (d description) {
	d.Options = fmt.Sprintf("buckets of %d and %d bytes, FindUnused %v, StaticGraph %v, BroadcastBuffers %v, hook %T",
		opts.FirstBucketBytes, opts.BucketBytes, opts.FindUnused, opts.StaticGraph, opts.BroadcastBuffers, opts.Hook)
	for _, b := range opts.Buffers {
		d.Buffers = append(d.Buffers, len(b))
	}
	with, without := 0, 0 // parameters that have a gradient of the program's own
	names := map[string]int{}
	for i, p := range params {
		shape := p.Shape
		if shape == nil {
			shape = []int{len(p.Data)}
		}
		before, twice := names[p.Name]
		names[p.Name] = i
		switch {
		case twice:
			d.Wrong = fmt.Sprintf("parameters %d and %d have the same name %q: give each its own", before, i, p.Name)
		case !isShapeOf(shape, len(p.Data)):
			d.Wrong = fmt.Sprintf("parameter %q has the shape %d and %d elements", p.Name, shape, len(p.Data))
		case p.Name == metadataKey || strings.HasPrefix(p.Name, bufferPrefix):
			d.Wrong = fmt.Sprintf("parameter %d has the name %q, which checkpoints need: give it another", i, p.Name)
		case p.Grad != nil && len(p.Grad) != len(p.Data):
			d.Wrong = fmt.Sprintf("parameter %q has %d elements, and its gradient %d", p.Name, len(p.Data), len(p.Grad))
		}
		if d.Wrong != "" {
			return d
		}
		switch {
		case len(p.Data) == 0: // either form
		case p.Grad == nil:
			without++
		default:
			with++
		}
		d.Parameters = append(d.Parameters, declared{p.Name, fmt.Sprintf("%T", *new(T)), shape})
	}
	switch {
	case len(params) == 0:
		d.Wrong = "there are no parameters"
	case with > 0 && without > 0:
		d.Wrong = fmt.Sprintf("%d of %d parameters have a gradient: all or none must have one", with, with+without)
	}
	d.Views = with == 0
	d.Process, d.Memory = process(), listMemory(params, opts.Buffers)
	return d
}

// agree returns the same error on all ranks, unless they bring the same, and whether a rank of the group has debug.
func agree(ctx context.Context, group *dist.ProcessGroup, mine description) (isDebug bool, err error) {
	all, err := dist.AllGatherObject(mine, dist.WithGroup(group), dist.WithContext(ctx), dist.WithKey("ddp.New"))
	if err != nil {
		return false, fmt.Errorf("ddp: %w", err)
	}
	for rank, d := range all {
		isDebug = isDebug || d.Debug
		if d.Wrong != "" {
			return false, &ccl.InvalidArgumentError{Operation: "ddp.New", Message: fmt.Sprintf("rank %d: %s", rank, d.Wrong)}
		}
	}
	if err := compareDescriptions(all); err != nil {
		return false, fmt.Errorf("ddp: %w", err)
	}
	if overlap := findOverlap(all); overlap != "" {
		return false, &ccl.InvalidArgumentError{Operation: "ddp.New", Message: overlap}
	}
	return isDebug, nil
}

// compareDescriptions returns a *ccl.MismatchError if ranks bring different parameters or options.
func compareDescriptions(all []description) error {
	longest := 0
	for _, d := range all {
		longest = max(longest, len(d.Parameters))
	}
	for i := range longest {
		if err := sameOnAll(all, fmt.Sprintf("parameter %d", i), func(d description) string {
			if i >= len(d.Parameters) {
				return fmt.Sprintf("none (it has %d)", len(d.Parameters))
			}
			return d.Parameters[i].String()
		}); err != nil {
			return err
		}
	}
	if err := sameOnAll(all, "form of gradients", func(d description) string {
		if d.Views {
			return "parts of buckets"
		}
		return "the program's own"
	}); err != nil {
		return err
	}
	if err := sameOnAll(all, "options", func(d description) string { return d.Options }); err != nil {
		return err
	}
	return sameOnAll(all, "lengths of buffers", func(d description) string { return fmt.Sprint(d.Buffers) })
}

// sameOnAll returns a *ccl.MismatchError if a value that ranks have brought differs.
func sameOnAll[D any](all []D, field string, value func(D) string) error {
	m := &ccl.MismatchError{Field: field}
	for rank, d := range all {
		m.Add(rank, value(d))
	}
	if len(m.Values) == 1 {
		return nil
	}
	return m
}
