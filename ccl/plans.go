package ccl

import (
	"fmt"

	"github.com/goccl/goccl/ccl/internal/fingerprint"
	"github.com/goccl/goccl/ccl/internal/reducer"
	"github.com/goccl/goccl/internal/flight"
	"github.com/goccl/goccl/transport"
)

// plan is how calls of one shape are done.
type plan struct {
	key       planKey
	algorithm string // that the call was forced to
	recorded  flight.What
	choice    Choice
	entry     uint64 // id of choice.Entry in fingerprints; 0 where the engine does the call itself
	shape     Shape
	isWide    bool // the kernel gets float16 as float32
	isShared  bool // ranks read memory or payloads of each other
	work      int  // bytes that the bodies of all ranks touch
	reduction reducer.Reduction
	// The fingerprint for a root, lengths and the key of a call.
	root        int
	lengths     uint64
	callKey     string
	fingerprint transport.Fingerprint
	hash        uint64
}

// setFingerprint makes the fingerprint of a request.
func (p *plan) setFingerprint(r *request) {
	p.root, p.lengths, p.callKey = r.root, r.lengths, r.opts.key
	p.fingerprint = fingerprint.Fingerprint{
		Collective: uint8(r.coll), DType: uint8(r.dtype), Op: r.op.fingerprintID(), Count: r.count, Root: r.root,
		Entry: p.entry, Counts: r.lengths, Key: fingerprint.KeyID(r.opts.key),
	}.Encode()
	p.hash = fingerprint.Hash(p.fingerprint)
}

// planKey holds the parameters that a plan is made for, except the name of the algorithm.
type planKey struct {
	coll  Collective
	dtype DType
	op    Op
	bytes int
	total int
}

// planCache is the number of plans that a communicator remembers, a power of two.
const planCache = 32

// plans are the plans that a communicator remembers.
type plans struct {
	all    [planCache]plan
	latest [len(collectives)]*plan // used last, by collective; another may have taken its slot
}

// slot returns where the plan for a request goes, unless it goes to the slot beside it.
func (r *request) slot() uint {
	h := uint64(r.bytes)*0x9e3779b97f4a7c15 ^ uint64(r.total)*0xbf58476d1ce4e5b9 ^
		(uint64(r.coll)<<40^uint64(r.dtype)<<32^uint64(r.op))*0x94d049bb133111eb ^ uint64(len(r.opts.algorithm))
	return uint(h>>40) % planCache
}

// isFor reports whether the plan is for r. It compares field by field: a key that is put together
// first would be read again before it is stored, which takes longer than everything else here.
func (p *plan) isFor(r *request) bool {
	return p.key.bytes == r.bytes && p.key.total == r.total && p.key.op == r.op &&
		p.key.coll == r.coll && p.key.dtype == r.dtype && p.algorithm == r.opts.algorithm
}

// choose returns the plan for a request.
func (e *engine) choose(r *request) (*plan, error) {
	latest := &e.plans.latest[r.coll]
	if p := *latest; p != nil && p.isFor(r) {
		return p, nil
	}

	at := r.slot()
	p, beside := &e.plans.all[at], &e.plans.all[at^1]

	switch {
	case p.isFor(r):
	case beside.isFor(r):
		p = beside
	default:
		if p.key != (planKey{}) {
			p = beside
		}
		if err := e.plan(r, p); err != nil {
			return nil, err
		}
		if p == e.call.plan { // it was that of the last call
			e.call.plan = nil
		}
	}
	*latest = p
	return p, nil
}

// plan writes the plan for a request.
func (e *engine) plan(r *request, p *plan) error {
	key := planKey{r.coll, r.dtype, r.op, r.bytes, r.total}
	known := false
	defer func() {
		if !known { // a user's code ends this goroutine, so the call ends here
			_ = e.end(e.reject(fmt.Errorf("ccl: %v: its goroutine ended while a kernel was chosen", r.coll)))
		}
	}()
	next := plan{key: key, algorithm: r.opts.algorithm, shape: Shape{
		Collective: r.coll, Ranks: e.size, Nodes: e.levels.count(), Bytes: key.bytes, Total: key.total,
		DType: r.dtype, Op: r.op.kernelOp(), Topology: e.selector.Topology(), Native: e.native != nil,
	}}
	switch r.coll {
	case CollBarrier, collNewGroup, collForm: // the synchronisation is all their work
	case collRegion, collAlloc:
		next.choice = Choice{Entry: engineEntry, Kernel: regionKernel}
		next.shape.Total = r.bytes
	case collGatherLengths, collScatterLengths, collAllToAllLengths, collSplit:
		next.choice = Choice{Entry: engineEntry, Kernel: lengthsKernel}
		next.shape = next.choice.Shape(next.shape, e.ep.PayloadLimit())

	default:
		choice, err := e.selector.Choose(next.shape, r.opts.algorithm)
		if err != nil {
			known = true
			return err
		}
		e.journal.logChoice(next.shape, &choice)
		next.choice, next.entry = choice, fingerprint.EntryID(choice.Entry)
		next.isWide = choice.Kernel.isWide(&next.shape)
		next.shape = choice.Shape(next.shape, e.ep.PayloadLimit())
		next.work = e.size * (next.shape.Bytes + next.shape.Total)
	}

	k := next.choice.Kernel
	if r.dtype != 0 {
		op, user := next.shape.Op.reduction()
		isPairwise := k != nil && k.Pairwise
		next.reduction = reducer.NewReduction(next.shape.DType.reduce(), op, user, r.op.divisorIn(e.size), isPairwise)
	}
	next.isShared = next.shape.Total > 0 && !k.Native && !k.TwoLevels
	next.setFingerprint(r)
	next.recorded = e.records.recordOf(&next)
	*p = next
	known = true
	return nil
}

// engineEntry stands for an entry's name where the engine's own kernels run.
const engineEntry = "the engine"
