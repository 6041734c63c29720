package ddp_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/half"
)

// errPlanned is why functions of Join and workers fail as their plan has it.
var errPlanned = errors.New("as the plan has it")

// errNoWait ends a function of Join that returns nil within a step.
var errNoWait = errors.New("no Wait")

// runPlan does the part of one rank in a plan. It returns how the rank deviates from the plan's
// definition, or nil; fails reports that its worker has to return an error.
func runPlan(p *Plan, group *dist.ProcessGroup) (fails bool, err error) {
	for _, t := range p.Trainings {
		ended, err := runTraining(p, t, group)
		if err != nil {
			return false, fmt.Errorf("training %d: %w", t.Number, err)
		}
		if ended != nil {
			return errors.Is(ended, errPlanned), nil
		}
	}
	return false, nil
}

// A trainee is a rank in a training.
type trainee struct {
	training   *Training
	definition *Definition
	group      *dist.ProcessGroup
	rank       int
	reducer    *ddp.Reducer
	failing    int // the parameter in whose bucket the hook fails
	params     []variable
	buffer     variable
	failed     bool  // by the plan's fault
	deviation  error // from the definition
	ended      error // the worker has to end
}

// negating is a hook that negates means. Finish fails in the bucket of a parameter.
type negating[T ddp.Float] struct{ failing *int }

func (negating[T]) Start(b *ddp.Bucket[T]) *ccl.Work {
	return startedBy(func(async ccl.CallOption) error {
		return ccl.AllReduce(bg, b.Comm, b.Gradients, b.Gradients, b.Op, async)
	})
}

func (h negating[T]) Finish(b *ddp.Bucket[T]) error {
	if slices.Contains(b.Parameters, *h.failing) {
		return errHook
	}
	v := floats(b.Gradients)
	for i := range v {
		v[i] = -v[i]
	}
	setFloats(b.Gradients, v)
	return nil
}

// runTraining makes a training. It returns why the worker has to end, and how the rank deviates from
// the definition.
func runTraining(p *Plan, t *Training, group *dist.ProcessGroup) (ended, deviation error) {
	x := &trainee{training: t, definition: NewDefinition(p, t), group: group, rank: group.Rank(), failing: -1}
	var params []ddp.Parameter
	for i, d := range t.Types { // New gives all ranks what rank 0 has
		x.params = append(x.params, newVariable(d, x.definition.Values(0, x.rank, 0, i)))
		params = append(params, x.params[i].parameter(parameterName(i), t.Views))
	}
	x.buffer = newVariable(t.Types[0], x.definition.Values(0, x.rank, 1, 0))
	opts := ddp.Options{
		FirstBucketBytes: t.First, BucketBytes: t.Rest, FindUnused: t.Unused, StaticGraph: t.Static,
		Buffers: []ddp.Tensor{x.buffer.tensor("buffer")}, BroadcastBuffers: t.Shares, LogicalShards: t.Shards,
	}
	if t.Hooked {
		opts.Hooks = ddp.Hooks{
			Float32: negating[float32]{&x.failing}, Float64: negating[float64]{&x.failing},
			Float16: negating[half.Float16]{&x.failing}, BFloat16: negating[half.BFloat16]{&x.failing},
		}
	}
	var err error
	if x.reducer, err = ddp.New(bg, group, params, opts); err != nil {
		return nil, fmt.Errorf("New: %w", err)
	}
	x.compareState("New")
	for i, ph := range t.Phases {
		if x.deviation == nil && !x.failed {
			x.phase(ph)
			x.verify()
		}
		if x.deviation != nil {
			return nil, fmt.Errorf("phase %d: %w", i, x.deviation)
		}
	}
	if x.ended == nil {
		x.end()
	}
	return x.ended, x.deviation
}

func parameterName(i int) string { return fmt.Sprint("parameter ", i) }

// deviate notes how the rank deviates from the definition.
func (x *trainee) deviate(format string, args ...any) error {
	if x.deviation == nil {
		x.deviation = fmt.Errorf(format, args...)
	}
	return x.deviation
}

// end closes the Reducer, which then refuses everything.
func (x *trainee) end() {
	if x.failed {
		if err := x.reducer.Wait(bg); err == nil {
			_ = x.deviate("Wait returns nil after the training has failed")
		}
	}
	if err := x.reducer.Close(); err != nil {
		_ = x.deviate("Close: %w", err)
	}
	x.reducer.Ready(0)
	called := false
	call := func() error { called = true; return nil }
	norm, clip := x.reducer.ClipGradNorm(1)
	for method, err := range map[string]error{
		"Wait": x.reducer.Wait(bg), "NoSync": x.reducer.NoSync(call), "Join": x.reducer.Join(bg, call),
		"ClipGradNorm": clip, "Verify": x.reducer.Verify(bg),
	} {
		if !errors.Is(err, ccl.ErrClosed) {
			_ = x.deviate("after Close %s returns %v", method, err)
		}
	}
	if g := x.params[0].gradient(x.reducer, 0); called || g != nil {
		_ = x.deviate("after Close a function was called: %v; norm %v, gradient %v", called, norm, g)
	}
}

// verify lets the ranks compare their parameters between phases, and compares what they find with the
// definition.
func (x *trainee) verify() {
	if x.failed || x.deviation != nil {
		return
	}
	differ := func(p int) bool {
		return slices.ContainsFunc(x.definition.Data, func(of [][]float64) bool {
			return !slices.Equal(of[p], x.definition.Data[0][p])
		})
	}
	var first string
	for p := range x.params {
		if first == "" && differ(p) {
			first = fmt.Sprint("parameter ", p)
		}
	}
	err := x.reducer.Verify(bg)
	mismatch, ok := errors.AsType[*ccl.MismatchError](err)
	if first == "" && err != nil || first != "" && (!ok || mismatch.Field != first) {
		_ = x.deviate("Verify returns %v; the first parameter that differs is %q", err, first)
	}
}

// phase makes a phase.
func (x *trainee) phase(ph *Phase) {
	if !ph.Join {
		for i := range ph.Steps {
			if x.step(ph, i) != nil {
				return
			}
		}
		return
	}
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	var f *Fault
	for _, s := range ph.Steps {
		if s.Fault != nil {
			f = s.Fault
		}
	}
	abandons := f != nil && f.Kind == FaultAbandons && f.Rank == x.rank
	if abandons {
		signal := ccl.Irecv(bg, x.group.Communicator(), []byte{0}, f.Holder, 1)
		go func() {
			_ = signal.Wait(bg)
			cancel()
		}()
	}
	err := x.reducer.Join(ctx, func() error {
		for i := range ph.Counts[x.rank] {
			if err := x.step(ph, i); errors.Is(err, errNoWait) {
				return nil
			} else if err != nil {
				return err
			}
		}
		return nil
	})
	switch {
	case x.deviation != nil:
	case f != nil:
		x.compareFault(f, true, err)
		if abandons {
			x.signal(f.Holder)
		}
	case err != nil:
		_ = x.deviate("Join: %w", err)
	default:
		for i := ph.Counts[x.rank]; i < len(ph.Steps); i++ {
			x.definition.Step(ph.Steps[i], ph.Trains(i), true)
		}
		x.definition.EndJoin(ph.Counts)
		x.compareState("Join")
	}
}

// signal lets another rank go on.
func (x *trainee) signal(to int) {
	if err := ccl.Send(bg, x.group.Communicator(), []byte{0}, to, 1); err != nil {
		_ = x.deviate("signal to rank %d: %w", to, err)
	}
}

// await waits until a rank has failed as the plan has it.
func (x *trainee) await(f *Fault) {
	if f.Kind == FaultAbandons {
		x.signal(f.Rank)
	}
	if _, err := ccl.Recv(bg, x.group.Communicator(), []byte{0}, f.Rank, 1); err != nil {
		_ = x.deviate("the signal of rank %d: %w", f.Rank, err)
	}
}

// step makes this rank's turn of a step. An error ends the phase.
func (x *trainee) step(ph *Phase, i int) error {
	s, turn := ph.Steps[i], ph.Steps[i].Turns[x.rank]
	fault := Fault{Kind: "none", First: -1}
	if f := s.Fault; f != nil {
		if f.Holder == x.rank {
			x.await(f)
		}
		if f.Rank == x.rank {
			fault = *f
		}
	}
	if fault.Kind == FaultLeaves {
		return x.fail(fault)
	}
	for p, v := range x.params {
		v.setGradient(x.reducer, p, x.definition.Values(s.Number, x.rank, 0, p))
	}
	if turn.Slip == SlipRange && s.Number%2 == 0 {
		x.reducer.Ready(len(x.params))
	}
	for b, ready := range turn.NoSync {
		if err := x.reducer.NoSync(func() error {
			for _, p := range ready {
				if !leavesOut(fault, p) {
					x.accumulate(s, x.rank, 1+b, p)
				}
			}
			return x.reducer.Wait(bg)
		}); err != nil {
			_ = x.deviate("step %d: NoSync: %w", s.Number, err)
		}
	}
	if turn.Slip == SlipNoLoop {
		x.reducer.Ready(0)
	}
	at := 0
	for shard := range x.shards() {
		here := Fault{Kind: "none", First: -1}
		if at == fault.Shard {
			here = fault
		}
		if x.lastBatch(s, shard, at == 0, here) != nil {
			return x.fail(fault)
		}
		if here.Kind == FaultBreaks {
			break
		}
		at++
	}
	if turn.Slip == SlipLoop {
		for shard := range x.reducer.Shards() {
			return x.deviate("step %d: a second loop has shard %d", s.Number, shard)
		}
	}
	return x.wait(ph, i, fault)
}

// shards returns those that this rank hosts. Without logical shards it is one, whose gradients the
// rank has accumulated before.
func (x *trainee) shards() iter.Seq[int] {
	if x.training.Shards > 0 {
		return x.reducer.Shards()
	}
	return slices.Values([]int{x.rank})
}

// lastBatch makes the gradients of the last batch in a step, or of a shard. Its error is that of a
// fault.
func (x *trainee) lastBatch(s *Step, shard int, isFirst bool, fault Fault) error {
	if x.training.Shards > 0 {
		for p, v := range x.params {
			v.setGradient(x.reducer, p, x.definition.Values(s.Number, shard, 0, p))
		}
	}
	turn := s.Turns[x.rank]
	for n, p := range append(slices.Clone(turn.Last), -1) {
		switch {
		case n == fault.First && mayReturn(fault.Kind):
			return errPlanned
		case n == fault.First && fault.Kind == FaultBreaks:
			return nil
		case p < 0, leavesOut(fault, p):
			continue
		}
		x.accumulate(s, shard, 1+len(turn.NoSync), p)
		if n == 0 && isFirst {
			x.slip(s)
		}
	}
	x.buffer.add(x.definition.Values(s.Number, shard, 0, 0), 1)
	return nil
}

// mayReturn reports whether a fault ends a step before Wait.
func mayReturn(kind string) bool {
	return slices.Contains([]string{
		FaultCloses, FaultFails, FaultReturns, FaultStops, FaultNested,
		FaultNoWait,
	}, kind)
}

// accumulate adds a batch's gradient of a parameter, which is ready then. In each third step this rank
// allocates it anew. It does not if it makes a mistake, since a gradient that is refused is not the
// parameter's, nor where New makes gradients and parameters may be unused: such a one would not be zero then.
func (x *trainee) accumulate(s *Step, shard, batch, p int) {
	v := x.params[p]
	g := v.gradient(x.reducer, p)
	mayBeZero := x.training.Views && (x.training.Unused || x.training.Static)
	isAnew := (s.Number+x.rank)%3 == 0 && s.Turns[x.rank].Slip == "" && !mayBeZero
	for j, value := range x.definition.Values(s.Number, shard, batch, p) {
		g[j] += value
	}
	if isAnew {
		v.readyAnew(x.reducer, p, g)
	} else {
		v.setGradient(x.reducer, p, g)
		x.reducer.Ready(p)
	}
}

// leavesOut reports whether this rank leaves a parameter out because of a fault.
func leavesOut(f Fault, p int) bool { return f.Kind == FaultUnready && f.Parameter == p }

// slip makes the mistakes that are made when the first gradient of a step is ready.
func (x *trainee) slip(s *Step) {
	turn, called := s.Turns[x.rank], false
	call := func() error { called = true; return nil }
	err := errPlanned
	switch turn.Slip {
	case SlipTwice:
		x.reducer.Ready(turn.Last[0])
	case SlipNoSync:
		err = x.reducer.NoSync(call)
	}
	if err == nil || called {
		_ = x.deviate("step %d: %s: got %v, and its function was called: %v", s.Number, turn.Slip, err, called)
	}
}

// fail ends the training in the way of a fault before Wait.
func (x *trainee) fail(f Fault) error {
	x.failed = true
	switch f.Kind {
	case FaultLeaves, FaultCloses:
		if err := x.reducer.Close(); err != nil {
			return x.deviate("Close: %w", err)
		}
	case FaultFails:
		x.ended = errPlanned
	case FaultReturns:
		x.ended = errNoWait
	case FaultNested:
		called := false
		err := x.reducer.Join(bg, func() error { called = true; return nil })
		if err == nil || called {
			return x.deviate("Join within Join returns %v, and its function was called: %v", err, called)
		}
		return err
	case FaultNoWait:
		return errNoWait
	}
	return errPlanned
}

// wait ends a step, and compares what this rank sees with the definition.
func (x *trainee) wait(ph *Phase, i int, fault Fault) error {
	s := ph.Steps[i]
	if turn := s.Turns[x.rank]; turn.Slip == SlipRange && s.Number%2 == 1 {
		x.reducer.Ready(-1)
	}
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	switch fault.Kind {
	case FaultContext:
		cancel()
	case FaultHook:
		x.failing = fault.Parameter
	}
	err := x.reducer.Wait(ctx)
	if x.deviation != nil {
		return x.deviation
	}
	_, failed := errors.AsType[*ccl.CollectiveFailedError](err)
	if f, must := faultOf(ph, i); f != nil && (failed || must) {
		x.compareFault(f, ph.Join, err)
		if fault.Kind == FaultContext {
			x.signal(f.Holder)
		}
		return errors.Join(err, x.deviation)
	}
	if problem := slipError(s.Turns[x.rank].Slip, err); problem != nil {
		return x.deviate("step %d: %w", s.Number, problem)
	}
	want := x.definition.Step(s, ph.Trains(i), ph.Join)[x.rank]
	for p := range want {
		g := x.params[p].gradient(x.reducer, p)
		x.compare(fmt.Sprintf("step %d: gradient of parameter %d", s.Number, p), g, want[p])
		x.params[p].add(g, -1)
	}
	x.compareState(fmt.Sprint("step ", s.Number))
	if x.training.Shards > 0 {
		x.compareMean(s)
	}
	x.clip(s, want)
	return x.deviation
}

// faultOf returns the fault by which Wait may fail in a step, and whether it must.
func faultOf(ph *Phase, i int) (f *Fault, must bool) {
	if f = ph.Steps[i].Fault; f != nil {
		return f, !f.Loose || !mayReturn(f.Kind)
	}
	if i > 0 && ph.Steps[i-1].Fault != nil {
		return ph.Steps[i-1].Fault, true
	}
	if i+1 < len(ph.Steps) {
		if f = ph.Steps[i+1].Fault; f != nil && f.Kind == FaultAbandons {
			return f, false
		}
	}
	return nil, false
}

// slipError returns what is wrong with the error of a Wait that completes a step.
func slipError(slip string, err error) error {
	mistake := slip != "" && slip != SlipNoSync
	if _, ok := errors.AsType[*ccl.InvalidArgumentError](err); ok == mistake && (mistake || err == nil) {
		return nil
	}
	return fmt.Errorf("Wait after the mistake %q returns: %v", slip, err)
}

// compareFault compares the error of a step, or of Join, with a fault.
func (x *trainee) compareFault(f *Fault, inJoin bool, err error) {
	x.failed = true
	isExpected := x.isErrorOfOther(f, inJoin, err)
	if f.Rank == x.rank {
		isExpected = x.isErrorOfFaulty(f, err)
	}
	if !isExpected {
		_ = x.deviate("%s on rank %d: got %v", f.Kind, f.Rank, err)
	}
}

// shardOf returns the shard in which a fault happens, 0 without shards.
func (x *trainee) shardOf(f *Fault) int {
	low, _ := ccl.BlockRange(x.training.Shards, f.Rank, x.group.Size())
	return low + f.Shard
}

// compareMean compares a mean over shards with the definition.
func (x *trainee) compareMean(s *Step) {
	var own []float64
	low, high := ccl.BlockRange(x.training.Shards, x.rank, x.group.Size())
	all := make([][]float64, x.training.Shards)
	for shard := range all {
		all[shard] = []float64{float64(s.Number+shard) / 3, 1 / float64(s.Number*shard+1)}
		if low <= shard && shard < high {
			own = append(own, all[shard]...)
		}
	}
	want := slices.Clone(addPairwise(ccl.Float64, all))
	for j := range want {
		want[j] /= float64(len(all))
	}
	got, err := ddp.MeanOverShards(bg, x.reducer, own)
	if err != nil {
		_ = x.deviate("step %d: MeanOverShards: %w", s.Number, err)
	}
	x.compare(fmt.Sprintf("step %d: mean over shards", s.Number), got, want)
}

// isErrorOfFaulty reports whether the rank that has a fault gets such an error.
func (x *trainee) isErrorOfFaulty(f *Fault, err error) bool {
	switch f.Kind {
	case FaultUnready:
		e, ok := errors.AsType[*ddp.UnreadyError](err)
		names := []string{parameterName(f.Parameter)}
		return ok && e.Rank == f.Rank && e.Static == x.training.Static && slices.Equal(e.Parameters, names) && e.Shard == x.shardOf(f)
	case FaultBreaks:
		e, ok := errors.AsType[*ddp.UnreadyError](err)
		return ok && e.Rank == f.Rank && e.IsSharded && len(e.Parameters) > 0 && (e.Shard == x.shardOf(f) || e.Shard == x.shardOf(f)+1 && len(e.Parameters) == len(x.params))
	case FaultHook:
		return errors.Is(err, errHook)
	case FaultContext, FaultAbandons:
		return errors.Is(err, context.Canceled)
	case FaultNested, FaultNoWait:
		_, ok := errors.AsType[*ccl.InvalidArgumentError](err)
		return ok
	}
	return err != nil
}

// isErrorOfOther reports whether other ranks than the one with a fault get such an error. Join aborts
// the group, so that within it ranks may find that first.
func (x *trainee) isErrorOfOther(f *Fault, inJoin bool, err error) bool {
	abort, ok := errors.AsType[*dist.AbortedError](err)
	aborted := ok && abort.By == f.Rank
	_, mismatch := errors.AsType[*ccl.MismatchError](err)
	text := fmt.Sprint(err)
	switch f.Kind {
	case FaultBreaks:
		return mismatch && strings.Contains(text, fmt.Sprintf("rejected on rank %d", f.Rank)) && strings.Contains(text, "loop over all Shards")
	case FaultUnready:
		refused := mismatch && strings.Contains(text, fmt.Sprintf("rejected on rank %d", f.Rank))
		return (refused || inJoin && aborted) && strings.Contains(text, parameterName(f.Parameter))
	case FaultHook:
		return aborted && strings.Contains(text, errHook.Error())
	case FaultNested:
		return aborted || mismatch
	case FaultLeaves, FaultReturns:
		lost, ok := errors.AsType[*dist.PeerLostError](err)
		return ok && lost.Rank == f.Rank || inJoin && aborted
	}
	return aborted
}

// clip clips the gradients, which have the values of want.
func (x *trainee) clip(s *Step, want [][]float64) {
	limit := []float64{1, 1e9, -1, math.NaN()}[s.Number%4]
	var squares float64
	for _, g := range want {
		for _, v := range g {
			squares += v * v
		}
	}
	norm, factor := math.Sqrt(squares), 1.0
	got, err := x.reducer.ClipGradNorm(limit)
	if valid := limit > 0; (err == nil) != valid {
		_ = x.deviate("step %d: ClipGradNorm(%v) returns %v", s.Number, limit, err)
	} else if valid {
		factor = min(1, limit/(norm+1e-6))
		if math.Abs(got-norm) > 1e-9*norm {
			_ = x.deviate("step %d: the norm is %v, want %v", s.Number, got, norm)
		}
	}
	for p := range want {
		digits := map[ccl.DType]float64{ccl.Float16: 0x1p-10, ccl.BFloat16: 0x1p-7}[x.training.Types[p]]
		for j, g := range x.params[p].gradient(x.reducer, p) {
			if v := want[p][j] * factor; math.Abs(g-v) > max(1e-6, digits)*math.Abs(v)+digits*0x1p-14 {
				_ = x.deviate("step %d: element %d of parameter %d clipped to %v is %v, want %v", s.Number, j, p, limit, g, v)
			}
		}
	}
}

// compareState compares parameters and buffers.
func (x *trainee) compareState(when string) {
	for p, v := range x.params {
		x.compare(fmt.Sprintf("%s: parameter %d", when, p), v.values(), x.definition.Data[x.rank][p])
	}
	x.compare(when+": buffer", x.buffer.values(), x.definition.Buffers[x.rank])
}

// compare compares values bit for bit; the sign of zero counts for nothing.
func (x *trainee) compare(what string, got, want []float64) {
	if len(got) != len(want) {
		_ = x.deviate("%s has %d elements, want %d", what, len(got), len(want))
		return
	}
	for j := range got {
		if got[j] != want[j] {
			_ = x.deviate("%s: element %d is %v, want %v", what, j, got[j], want[j])
			return
		}
	}
}
