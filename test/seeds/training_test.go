//go:build interleave

package seeds

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/internal/interleave"
)

// runTraining runs a job that trains a small model by package ddp. In most jobs a rank gives up in
// the midst of a step.
func runTraining(t *testing.T, seed uint64, o interleave.Options) (interleave.Result, error) {
	random := rand.New(rand.NewPCG(seed, 32))
	interleave.SetProcessors([]int{1, 8}[random.IntN(2)])
	j := newTraining(random)
	if j.saved >= 0 {
		j.path = filepath.Join(os.TempDir(), fmt.Sprintf("goccl-seeds-%010d-%020d.safetensors", os.Getpid(), seed))
		defer func() { _ = os.Remove(j.path) }()
	}

	o.Patience = patience
	r := interleave.Run(t, o, j.spawn)
	if r.Finding != nil {
		return r, nil
	}
	if err := j.check(); err != nil {
		return r, fmt.Errorf("%v: %w", j, err)
	}
	return r, nil
}

// Faults of a rank in a step.
const (
	leaves       fault = "destroys its groups"
	fails        fault = "returns an error"
	panics       fault = "panics"
	cancelsStep  fault = "cancels the step"
	forgets      fault = "forgets a gradient"
	panicsInHook fault = "panics in the start of its hook"
	failsInHook  fault = "fails in the end of its hook"
	closesModel  fault = "closes its Reducer"

	panicsInUpdate fault = "panics in the update of its parts" // in place of fails, with shards
)

var trainingFaults = []fault{
	noFault, noFault, noFault, leaves, fails, panics, cancelsStep, forgets, panicsInHook, failsInHook, closesModel,
}

// training is a job that trains, and what has come of it.
type training struct {
	ranks   int
	lengths []int // of the parameters
	steps   []int // by rank; unequal only within Join
	orders  [][]int
	form    int // of the gradients
	threads int // that call Ready
	noSync  int // of so many steps one has gradients accumulated before; 0: none
	clips   bool
	joins   bool
	hooks   bool
	checks  bool // Verify after each step
	bucket  int  // bytes
	saved   int  // the step before which a checkpoint is saved; -1: none
	loaded  int  // the step before which it is loaded
	shards  bool // ranks update parts, with momentum
	reads   bool // each rank reads the checkpoint by itself

	by    int
	fault fault
	at    int // the step
	delay int // steps of the scheduler after the beginning of the step, of cancelsStep

	path    string
	err     error
	errs    []error
	begun   []int         // by rank: steps before which the checkpoint was made, or there is none
	done    []int         // by rank: steps that have succeeded
	torn    []bool        // by rank: the weights are undefined, since their update has failed
	weights [][][]float32 // by rank and parameter
	spoilt  [][][]float32 // likewise: gradients of a step that has failed
}

// Forms of gradients.
const (
	formOwn = iota
	formViews
	formFresh
	forms
)

func newTraining(random *rand.Rand) *training {
	j := &training{
		ranks: 2 + random.IntN(3), form: random.IntN(forms), threads: 1 + random.IntN(3), noSync: []int{0, 0, 2}[random.IntN(3)],
		clips: random.IntN(3) == 0, joins: random.IntN(3) == 0, checks: random.IntN(4) == 0, bucket: 16 << random.IntN(4),
		saved: -1, fault: trainingFaults[random.IntN(len(trainingFaults))],
	}
	for range 1 + random.IntN(4) {
		j.lengths = append(j.lengths, 3+random.IntN(38))
	}
	for range 3 {
		j.orders = append(j.orders, random.Perm(len(j.lengths)))
	}
	steps := 1 + random.IntN(4)
	for range j.ranks {
		j.steps = append(j.steps, steps)
		if j.joins {
			j.steps[len(j.steps)-1] = random.IntN(5)
		}
	}

	j.by = random.IntN(j.ranks)
	j.hooks = j.fault == panicsInHook || j.fault == failsInHook || random.IntN(4) == 0
	j.delay = random.IntN(2000)
	if j.steps[j.by] == 0 {
		j.fault = noFault
	} else {
		j.at = random.IntN(j.steps[j.by])
	}
	if j.fault == forgets && j.batches(j.by, j.at) > 1 { // what is accumulated counts as ready
		j.fault = fails
	}
	if j.joins {
		j.checks = false
	} else if random.IntN(5) == 0 {
		j.saved = random.IntN(steps)
		j.loaded = j.saved + random.IntN(steps-j.saved)
	}
	j.drawShards(random)
	j.errs, j.begun, j.done, j.weights = make([]error, j.ranks), make([]int, j.ranks), make([]int, j.ranks), make([][][]float32, j.ranks)
	j.torn, j.spoilt = make([]bool, j.ranks), make([][][]float32, j.ranks)
	return j
}

// drawShards draws whether ranks update parts.
func (j *training) drawShards(random *rand.Rand) {
	j.reads = random.IntN(2) == 0
	j.shards = !j.joins && random.IntN(3) == 0
	if !j.shards {
		return
	}
	j.clips = j.clips && j.ranks != 3 // means of thirds are not exact, and the order in which squares are added counts
	if isUpdating := slices.Min(j.lengths) >= j.ranks; isUpdating && j.fault == fails && random.IntN(2) == 0 {
		j.fault = panicsInUpdate
	}
}

func (j *training) String() string {
	return fmt.Sprintf("%d ranks, parameters of %d, steps %d, form %d, threads %d, NoSync %d, clips %v, joins %v, hooks %v, checks %v, buckets of %d, saved %d, loaded %d, shards %v, reads %v; rank %d %s in step %d (%d)",
		j.ranks, j.lengths, j.steps, j.form, j.threads, j.noSync, j.clips, j.joins, j.hooks, j.checks, j.bucket, j.saved, j.loaded, j.shards, j.reads, j.by, j.fault, j.at, j.delay)
}

func (j *training) spawn() {
	j.err = dist.Spawn(func(_ context.Context, rank int) error {
		interleave.SetLabel(fmt.Sprint("rank ", rank))
		j.errs[rank] = errEnough // unless it returns
		j.errs[rank] = j.work(rank)
		return j.errs[rank]
	}, dist.WithRanks(j.ranks))
}

// work is the worker of a rank.
func (j *training) work(rank int) error {
	if err := dist.InitProcessGroup("ccl", dist.WithConfig(spawnConfig), dist.WithTimeout(spawnTimeout)); err != nil {
		return err
	}
	all, err := dist.Default()
	if err != nil {
		return err
	}

	m := &trainer{training: j, rank: rank, weights: j.initial(rank)}
	j.weights[rank] = m.weights
	var params []ddp.Parameter
	for i, w := range m.weights {
		m.grads = append(m.grads, make([]float32, len(w)))
		var grad []float32
		if j.form != formViews {
			grad = m.grads[i]
		}
		params = append(params, ddp.Param(fmt.Sprint("w", i), w, grad))
	}
	o := ddp.Options{FirstBucketBytes: j.bucket, BucketBytes: 2 * j.bucket, Shard: j.shards}
	if j.hooks {
		o.Hooks.Float32 = &trainingHook{m}
	}
	if m.model, err = ddp.New(context.Background(), all, params, o); err != nil {
		return err
	}

	if j.shards {
		if m.momentum, err = ddp.NewOptimizerState[float32](m.model, "momentum"); err != nil {
			return err
		}
	}
	if j.joins {
		err = m.model.Join(context.Background(), m.train)
	} else {
		err = m.train()
	}
	if err != nil {
		return err
	}
	return errors.Join(m.model.Close(), dist.DestroyProcessGroup())
}

// initial returns the weights of a rank before New gives it those of rank 0.
func (j *training) initial(rank int) (weights [][]float32) {
	for i, n := range j.lengths {
		w := make([]float32, n)
		for k := range w {
			w[k] = float32(i+k%7+rank) / 8
		}
		weights = append(weights, w)
	}
	return weights
}

// gradient returns an element of a rank's gradient, a multiple of 1/8 below 2^10: sums of such are
// exact in any order. It depends on the weight.
func (j *training) gradient(rank, step, batch, parameter, k int, weight float32) float32 {
	return float32(int(weight*8)%64)/8 + float32((3*rank+5*step+7*batch+11*parameter+13*k)%64-32)/8
}

// batches returns how many batches a step of a rank has; all but the last are accumulated.
func (j *training) batches(rank, step int) int {
	if j.noSync > 0 && (step+rank)%j.noSync == 0 {
		return 2
	}
	return 1
}

// clipLimit is so small that most gradients are clipped.
const clipLimit = 8

// trainer is a rank that trains.
type trainer struct {
	*training
	rank     int
	model    *ddp.Reducer
	weights  [][]float32
	grads    [][]float32
	momentum [][]float32 // of the parts of this rank
	step     int
}

// train makes the steps of the rank.
func (m *trainer) train() error {
	for m.step = 0; m.step < m.steps[m.rank]; m.step++ {
		if err := m.checkpoint(); err != nil {
			return fmt.Errorf("before step %d: %w", m.step, err)
		}
		m.begun[m.rank]++
		if err := m.trainStep(); err != nil {
			return fmt.Errorf("step %d: %w", m.step, err)
		}
		m.done[m.rank]++
		if !m.checks {
			continue
		}
		if err := m.model.Verify(context.Background()); err != nil {
			return fmt.Errorf("Verify after step %d: %w", m.step, err)
		}
	}
	return nil
}

func (m *trainer) checkpoint() error {
	state := m.step
	if m.step == m.saved {
		if err := m.model.Save(context.Background(), m.path, &state); err != nil {
			return err
		}
		if err := m.readCheckpoint(); err != nil {
			return err
		}
	}
	if m.saved >= 0 && m.step == m.loaded {
		if err := m.model.Load(context.Background(), m.path, &state); err != nil {
			return err
		}
		if state != m.saved {
			return fmt.Errorf("the state of the checkpoint is %d, want %d", state, m.saved)
		}
	}
	return nil
}

// readCheckpoint compares a checkpoint, which this rank reads without the others, with its weights.
func (m *trainer) readCheckpoint() error {
	if !m.reads {
		return nil
	}
	c, err := ddp.ReadCheckpoint(m.path)
	if err != nil {
		return err
	}
	saved := 0
	if err := c.State(&saved); err != nil || saved != m.step {
		return fmt.Errorf("the state of the checkpoint is %d, want %d (%w)", saved, m.step, err)
	}

	var tensors []ddp.Tensor
	copied := cloneAll(m.weights)
	for i, w := range copied {
		clear(w)
		tensors = append(tensors, ddp.Buffer(fmt.Sprint("w", i), w))
	}
	unmatched, err := c.Load(ddp.LoadOptions{AllowUnexpected: true}, tensors...)
	if err != nil {
		return err
	}
	if others := len(unmatched.Unexpected); m.shards && others != len(copied) || !m.shards && others > 0 {
		return fmt.Errorf("beside the weights the checkpoint has %v", unmatched.Unexpected)
	}
	for i, w := range copied {
		if !slices.Equal(w, m.weights[i]) {
			return fmt.Errorf("the checkpoint has %v in parameter %d, and this rank %v", w, i, m.weights[i])
		}
	}
	return nil
}

func (m *trainer) isFaulty() bool { return m.rank == m.by && m.step == m.at }

// trainStep makes a step.
func (m *trainer) trainStep() error {
	ctx := context.Background()
	for i := range m.grads {
		if m.form != formFresh {
			m.grads[i] = ddp.Grad[float32](m.model, i)
		} else {
			m.grads[i] = make([]float32, m.lengths[i])
		}
		clear(m.grads[i])
	}

	batches := m.batches(m.rank, m.step)
	for batch := range batches - 1 {
		err := m.model.NoSync(func() error {
			m.backward(batch)
			return m.model.Wait(ctx)
		})
		if err != nil {
			return err
		}
	}

	if m.isFaulty() {
		switch m.fault {
		case leaves:
			return errors.Join(errLeft, dist.DestroyProcessGroup())
		case fails:
			return errEnough
		case panics:
			panic(errEnough)
		case closesModel:
			return errors.Join(errLeft, m.model.Close())
		case cancelsStep:
			canceled, cancel := context.WithCancel(ctx)
			ctx = canceled
			interleave.At(int(interleave.Moment())+m.delay, cancel)
		}
	}

	m.backward(batches - 1)
	if err := m.model.Wait(ctx); err != nil {
		m.spoil()
		return err
	}
	return m.update()
}

// spoil overwrites the gradients of a step that has failed, which are the program's again.
func (m *trainer) spoil() {
	if m.form == formViews {
		return
	}
	for _, g := range m.grads {
		for k := range g {
			g[k] = spoilt
		}
	}
	m.spoilt[m.rank] = m.grads
}

// errLeft is the error of a worker that has left its groups before.
var errLeft = errors.New("this rank has left")

// backward adds the gradients of a batch, and calls Ready in a drawn order by several goroutines.
func (m *trainer) backward(batch int) {
	order := m.orders[(m.rank+m.step)%len(m.orders)]
	isForgotten := m.isFaulty() && m.fault == forgets && batch == m.batches(m.rank, m.step)-1
	var all interleave.WaitGroup
	for thread := range m.threads {
		work := func() {
			for n := thread; n < len(order); n += m.threads {
				i := order[n]
				for k := range m.grads[i] {
					m.grads[i][k] += m.gradient(m.rank, m.step, batch, i, k, m.weights[i][k])
				}
				switch {
				case isForgotten && n == len(order)-1:
				case m.form == formFresh:
					ddp.ReadyGrad(m.model, i, m.grads[i])
				default:
					m.model.Ready(i)
				}
			}
		}
		if thread == m.threads-1 || m.fault == panicsInHook { // the panic must end the worker
			work()
		} else {
			all.Go(work)
		}
	}
	all.Wait()
}

// update makes a step against the gradients.
func (m *trainer) update() error {
	if m.clips {
		if _, err := m.model.ClipGradNorm(clipLimit); err != nil {
			return err
		}
	}
	if m.shards {
		return m.updateParts()
	}
	for i, g := range m.grads {
		descend(m.weights[i], g)
	}
	return nil
}

// updateParts is update of this rank's parts.
func (m *trainer) updateParts() error {
	m.torn[m.rank] = true
	err := ddp.Step(context.Background(), m.model, func(p ddp.Part[float32]) {
		if m.isFaulty() && m.fault == panicsInUpdate {
			panic(errEnough)
		}
		descendBy(m.momentum[p.Parameter], p.Values, p.Gradient)
	})
	m.torn[m.rank] = err != nil
	return err
}

func descend(weights, gradient []float32) {
	for k, g := range gradient {
		weights[k] -= g / 4
	}
}

// descendBy is descend with momentum.
func descendBy(momentum, weights, gradient []float32) {
	for k, g := range gradient {
		momentum[k] = momentum[k]/2 + g
	}
	descend(weights, momentum)
}

// trainingHook is an all-reduce of a rank that may fail.
type trainingHook struct{ m *trainer }

func (h *trainingHook) Start(b *ddp.Bucket[float32]) *ccl.Work {
	if h.m.isFaulty() && h.m.fault == panicsInHook {
		panic(errEnough)
	}
	w := new(ccl.Work)
	_ = ccl.AllReduce(context.Background(), b.Comm, b.Gradients, b.Gradients, b.Op, ccl.WithWork(w)) // the Work has the error as well
	return w
}

func (h *trainingHook) Finish(*ddp.Bucket[float32]) error {
	if h.m.isFaulty() && h.m.fault == failsInHook {
		return errEnough
	}
	return nil
}

// after returns the weights after so many steps and the beginning of so many, by the definition: the
// ranks one after another.
func (j *training) after(steps, begun int) [][]float32 {
	weights, momentum := j.initial(0), cloneAll(j.initial(0))
	for _, m := range momentum {
		clear(m)
	}
	saved, savedMomentum := weights, momentum
	for step := range begun {
		if step == j.saved {
			saved, savedMomentum = cloneAll(weights), cloneAll(momentum)
		}
		if j.saved >= 0 && step == j.loaded {
			weights, momentum = cloneAll(saved), cloneAll(savedMomentum)
		}
		if step < steps {
			j.step(step, weights, momentum)
		}
	}
	return weights
}

func cloneAll(weights [][]float32) (copied [][]float32) {
	for _, w := range weights {
		copied = append(copied, slices.Clone(w))
	}
	return copied
}

// step makes a step of all ranks.
func (j *training) step(step int, weights, momentum [][]float32) {
	grads := make([][]float32, len(weights))
	for i, w := range weights {
		grads[i] = make([]float32, len(w))
		for k := range w {
			grads[i][k] = j.mean(step, i, k, w[k])
		}
	}

	if j.clips {
		clip(grads)
	}
	for i, g := range grads {
		if j.shards {
			descendBy(momentum[i], weights[i], g)
		} else {
			descend(weights[i], g)
		}
	}
}

// mean returns the mean of an element over the ranks that train in a step.
func (j *training) mean(step, parameter, k int, weight float32) float32 {
	sum, trains := float32(0), 0
	for rank := range j.ranks {
		if step >= j.steps[rank] {
			continue
		}
		trains++
		for batch := range j.batches(rank, step) {
			sum += j.gradient(rank, step, batch, parameter, k, weight)
		}
	}
	return float32(float64(sum) * (1 / float64(trains)))
}

// clip is ClipGradNorm.
func clip(grads [][]float32) {
	sum := 0.0
	for _, g := range grads {
		part := 0.0
		for _, x := range g {
			part += float64(x) * float64(x)
		}
		sum += part
	}
	if factor := clipLimit / (math.Sqrt(sum) + 1e-6); factor < 1 {
		for _, g := range grads {
			for k := range g {
				g[k] = float32(float64(g[k]) * factor)
			}
		}
	}
}

// check returns what is wrong with how the job has ended.
func (j *training) check() error {
	if err := j.checkErrors(); err != nil {
		return err
	}
	for rank := range j.errs {
		if err := j.checkWeights(rank); err != nil {
			return err
		}
		for i, g := range j.spoilt[rank] {
			if slices.ContainsFunc(g, func(x float32) bool { return x != spoilt }) {
				return fmt.Errorf("buffers: gradient %d of rank %d is written after its step has failed: %v", i, rank, g)
			}
		}
	}
	if hasFailed := j.fault != noFault && j.fault != cancelsStep; hasFailed && j.err == nil {
		return errors.New("Spawn returns nil")
	}
	return nil
}

// checkErrors checks that a rank has an error exactly if it must, and that errors lead to the fault.
func (j *training) checkErrors() error {
	for rank, err := range j.errs {
		switch {
		case j.fault == noFault && err != nil:
			return fmt.Errorf("rank %d: %w", rank, err)
		case err == nil && j.fault != noFault && j.fault != cancelsStep:
			return fmt.Errorf("rank %d has no error", rank)
		}
	}
	return checkBlame(j.errs, func(rank int) bool { return j.fault != noFault && rank == j.by })
}

// checkWeights checks that a rank has made the steps before the fault, all ranks the same, and that
// its weights are those of the definition.
func (j *training) checkWeights(rank int) error {
	done := j.done[rank]
	switch {
	case j.fault == noFault && done != j.steps[rank]:
		return fmt.Errorf("rank %d has made %d steps", rank, done)
	case j.fault != noFault && j.fault != cancelsStep && done != min(j.at, j.steps[rank]):
		return fmt.Errorf("rank %d has made %d steps", rank, done)
	case j.errs[rank] == nil && j.joins: // it has got the last weights
		done = slices.Max(j.steps)
	case j.torn[rank], done == 0: // or it may have the weights with which it has begun
		return nil
	}

	for i, want := range j.after(done, max(done, j.begun[rank])) {
		if !slices.Equal(j.weights[rank][i], want) {
			return fmt.Errorf("rank %d has after %d steps in parameter %d the weights %v, want %v", rank, done, i, j.weights[rank][i], want)
		}
	}
	return nil
}
