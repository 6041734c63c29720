package ddp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/goccl/goccl/ccl/agree"
	"github.com/goccl/goccl/internal/failure"
)

// LoadOptions are the choices of LoadWith and of Checkpoint.Load; the zero value has those of
// Reducer.Load.
type LoadOptions struct {
	// Names has the name in the file of each tensor that has another one there.
	Names map[string]string

	// AllowMissing leaves tensors as they are that the file does not have, and AllowUnexpected ignores
	// tensors of the file that are not asked for. Both are strict=False of torch.
	//
	// A model in several files is loaded by a LoadWith for each, with both.
	AllowMissing, AllowUnexpected bool
}

// Unmatched has the names of tensors that a file and a model do not share, sorted.
type Unmatched struct {
	Missing    []string // of the model, by its names
	Unexpected []string // of the file
}

// Load reads a checkpoint that Save wrote with the same parameters, buffers and more tensors, or a
// safetensors file of another tool, such as torch, with these tensors. All ranks call Load, and
// each reads the file. state is a pointer to what was saved, which becomes the new value as a whole
// (fields that the file does not have become zero), or nil, as for files of other tools.
//
// Load changes tensors and state on all ranks or on none. A file that is torn, foreign, of another
// version or of another model on any rank is a *CheckpointError on all, and so are files that
// differ: it names the rank and the first tensor. It is fs.ErrNotExist if no rank has the file.
//
// A model is the same if names, types and shapes are; the order does not count. The error lists the
// names that one of both lacks, and says if a shape is transposed. LoadWith allows more.
//
// A rank that does not call Load within the group's timeout is a *dist.TimeoutError of the
// others. They wait for ranks that read as long as Save waits for the one that writes.
//
// It has the errors of Save within Join, between Ready and Wait, and after the end.
func (r *Reducer) Load(ctx context.Context, path string, state any, more ...Tensor) error {
	_, err := r.LoadWith(ctx, path, state, LoadOptions{}, more...)
	return err
}

// LoadWith is Load of a file with other names, with more tensors or with fewer (load_state_dict of
// torch). It returns the names that file and model do not share, also if it refuses them.
//
// The options are the same on all ranks.
func (r *Reducer) LoadWith(ctx context.Context, path string, state any, opts LoadOptions, more ...Tensor) (Unmatched, error) {
	if err := r.beginCheckpoint("Load"); err != nil {
		return Unmatched{}, err
	}
	defer r.comm.Release()
	if err := r.awaitRanks(ctx, "ddp.Load"); err != nil {
		return Unmatched{}, err
	}

	l := loading{tensors: r.tensors(r.states, more), opts: opts, shards: r.opts.LogicalShards}
	var failed, absent error
	if err := r.workTogether(ctx, "ddp.Load: ranks read", func() { failed = l.read(path, state) }); err != nil {
		return Unmatched{}, err
	}

	var facts []agree.Fact
	switch {
	case errors.Is(failed, fs.ErrNotExist):
		absent, failed = failed, nil
		facts = []agree.Fact{{Name: "file", Value: "it does not exist"}}
	case failed == nil:
		facts = l.contents.facts(l.names)
	}

	if err := r.agreeOnFile(ctx, "ddp.Load", path, failed, facts); err != nil {
		return l.unmatched, err
	}
	if absent != nil { // on all ranks
		return Unmatched{}, &CheckpointError{path, absent.Error(), failure.Share(absent, r.group.Ranks())}
	}
	l.contents.assign(l.names, l.tensors)
	if l.assignState != nil {
		l.assignState()
	}
	r.renewOuter()
	return l.unmatched, nil
}

// loading is what a rank does in Load before ranks agree.
type loading struct {
	tensors     []Tensor
	opts        LoadOptions
	shards      int      // Options.LogicalShards
	names       []string // of tensors, in the file
	unmatched   Unmatched
	contents    *contents
	assignState func() // nil: the program asks for no state
}

// read reads a file, and changes nothing that the program sees.
func (l *loading) read(path string, state any) (err error) {
	l.contents, err = readFile(path, func(h *header) (map[string]elements, error) {
		if have := h.metadata[shardsKey]; have != "" && l.shards > 0 && have != strconv.Itoa(l.shards) {
			return nil, fmt.Errorf("it is of a training on %.20q logical shards, and Options.LogicalShards is %d: what follows would have other bits (ReadCheckpoint takes any file)", have, l.shards)
		}

		var err error
		if l.names, l.unmatched, err = h.match(l.tensors, &l.opts); err != nil {
			return nil, err
		}
		return h.allocate(l.names, l.tensors), nil
	})
	if err == nil && state != nil {
		l.assignState, err = l.contents.decodeState(state)
	}
	return err
}

// decodeState returns a function that sets *state to the state of the file.
func (c *contents) decodeState(state any) (assign func(), err error) {
	if c.metadata[versionKey] == "" {
		return nil, errors.New("it has no state, since Save has not written it: pass nil in place of a pointer to one")
	}
	return unmarshal(c.metadata[stateKey], state)
}

// assign sets tensors, which have these names in the file, to what was read.
func (c *contents) assign(names []string, tensors []Tensor) {
	for i, t := range tensors {
		if values := c.values[names[i]]; values != nil {
			t.elements.copyFrom(values)
		}
	}
}

// match returns the names that tensors have in the file, or why it is not one of their model.
func (h *header) match(tensors []Tensor, opts *LoadOptions) (names []string, unmatched Unmatched, err error) {
	want, err := entries(tensors)
	if err != nil {
		return nil, unmatched, err
	}
	for _, name := range slices.Sorted(maps.Keys(opts.Names)) {
		if _, ok := want[name]; !ok {
			return nil, unmatched, fmt.Errorf("LoadOptions.Names has the name %q, which no tensor of the model has", name)
		}
	}

	var differ []string
	stored := h.byName()
	asked := map[string]bool{}
	for _, t := range tensors {
		name, hasOther := opts.Names[t.name]
		if !hasOther {
			name = t.name
		}
		names, asked[name] = append(names, name), true

		if have, e := stored[name], want[t.name]; have == nil {
			unmatched.Missing = append(unmatched.Missing, t.name)
		} else if difference := have.difference(t.name, &e); difference != "" {
			differ = append(differ, difference)
		}
	}

	for _, t := range h.tensors {
		if !asked[t.name] {
			unmatched.Unexpected = append(unmatched.Unexpected, t.name)
		}
	}
	slices.Sort(unmatched.Missing)
	slices.Sort(unmatched.Unexpected)
	return names, unmatched, opts.refuse(&unmatched, differ)
}

// allocate returns memory for tensors that have these names in the file, by the names: for a part
// of a tensor if a rank needs no more.
func (h *header) allocate(names []string, tensors []Tensor) map[string]elements {
	stored, all := h.byName(), map[string]elements{}
	for i, name := range names {
		switch have := stored[name]; {
		case have == nil:
		case all[name] != nil: // another tensor needs it, perhaps another part
			all[name] = newStored[have.DType](have.count())
		default:
			all[name] = tensors[i].elements.fresh()
		}
	}
	return all
}

// refuse returns why a file is refused in which tensors are unmatched, and others differ.
func (o *LoadOptions) refuse(u *Unmatched, differ []string) error {
	var reasons []string
	if len(u.Missing) > 0 && !o.AllowMissing {
		reasons = append(reasons, "it has no tensor "+joinNames(u.Missing))
	}
	if len(u.Unexpected) > 0 && !o.AllowUnexpected {
		reasons = append(reasons, "the model has no tensor "+joinNames(u.Unexpected))
	}
	if len(reasons) > 0 {
		reasons[len(reasons)-1] += " (see LoadOptions)"
	}

	switch n := len(differ); {
	case n > 1:
		reasons = append(reasons, fmt.Sprintf("%s (the first of %d that differ)", differ[0], n))
	case n == 1:
		reasons = append(reasons, differ[0])
	case reasons == nil:
		return nil
	}
	return errors.New(strings.Join(reasons, "; "))
}

// difference returns in what a tensor of the file differs from that of a model, or "".
func (t *storedTensor) difference(name string, e *tensorEntry) string {
	how := ""
	switch {
	case t.DType == e.DType && slices.Equal(t.Shape, e.Shape):
		return ""
	case isTransposed(t.Shape, e.Shape):
		how = "transposed: "
	}
	return fmt.Sprintf("its tensor %.100q is %s%s, and %.100q of the model is %s", t.name, how, t.text(), name, e.text())
}

// isTransposed reports whether shapes have the same extents in different orders.
func isTransposed(a, b []int) bool {
	return !slices.Equal(a, b) && slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
