package measure

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/internal/workload"
)

// Plan is a matrix of cases: all combinations of its values.
type Plan struct {
	Collectives []string // including "barrier"
	Workloads   []string // each with both kinds of backward; of the other values they have Ranks and Compute
	DTypes      []string
	Ops         []string // for collectives that reduce
	Ranks       []int
	Bytes       []int  // of one rank's input, rounded to whole elements and blocks
	InPlace     []bool // for collectives that support both
	Root        int    // of rooted collectives
	Consume     bool
	Compute     time.Duration // see Case; SetCompute sets all three
	Jitter      float64
	Buckets     int
}

// What Plan.Jitter and Plan.Buckets are by default if ranks compute.
const (
	defaultJitter  = 0.1
	defaultBuckets = 4
)

// MaxBuckets bounds Plan.Buckets.
const MaxBuckets = maxTurnCalls

// SetCompute sets for how long ranks compute before their calls, and how. A nil jitter and 0
// buckets stand for the defaults.
func (p *Plan) SetCompute(compute time.Duration, jitter *float64, buckets int) {
	p.Compute, p.Jitter, p.Buckets = compute, 0, buckets
	if compute > 0 {
		p.Jitter, p.Buckets = defaultJitter, cmp.Or(buckets, defaultBuckets)
	}
	if jitter != nil {
		p.Jitter = *jitter
	}
}

// Validate checks the values.
func (p *Plan) Validate() error {
	return cmp.Or(
		errors.Join(CheckTwins(p.Collectives), CheckTwins(p.Workloads), CheckTwins(p.DTypes), CheckTwins(p.Ops), CheckTwins(p.Ranks)),
		checkAll(p.Collectives, CheckCollective),
		checkAll(p.Workloads, checkWorkload),
		checkAll(p.DTypes, CheckDType),
		checkAll(p.Ops, CheckOp),
		p.checkComputing(),
		checkAll(p.Ranks, p.checkRanks))
}

func checkAll[T any](values []T, check func(T) error) error {
	for _, v := range values {
		if err := check(v); err != nil {
			return err
		}
	}
	return nil
}

// CheckCollective returns an error if there is no collective of that name.
func CheckCollective(name string) error {
	if name == barrier {
		return nil
	}
	if err := new(ccl.Collective).UnmarshalText([]byte(name)); err != nil {
		return fmt.Errorf("%w; barrier can be measured as well", err)
	}
	return nil
}

// CheckDType returns an error if there is no element type of that name.
func CheckDType(name string) error { return new(ccl.DType).UnmarshalText([]byte(name)) }

// CheckOp returns an error if there is no operation of that name.
func CheckOp(name string) error { return new(ccl.Op).UnmarshalText([]byte(name)) }

func checkWorkload(name string) error {
	_, err := workload.Named(name)
	return err
}

// checkComputing checks how ranks compute before their calls.
func (p *Plan) checkComputing() error {
	switch {
	case p.Compute < 0:
		return fmt.Errorf("computing for %v: at least 0", p.Compute)
	case !(p.Jitter >= 0 && p.Jitter <= 1): // or not a number
		return fmt.Errorf("a jitter of %v: from 0 to 1 is possible, a share of the time to compute", p.Jitter)
	case p.Jitter > 0 && p.Compute == 0:
		return errors.New("a jitter needs a time to compute")
	case p.Buckets < 0 || p.Buckets > MaxBuckets:
		return fmt.Errorf("%d calls in a row: from 1 to %d are possible", p.Buckets, MaxBuckets)
	}
	return nil
}

func (p *Plan) checkRanks(n int) error {
	switch {
	case n < 1 || n > config.MaxRanks:
		return fmt.Errorf("%d ranks: from 1 to %d are possible", n, config.MaxRanks)
	case p.Root < 0 || p.Root >= n:
		return fmt.Errorf("root %d is not a rank of %d", p.Root, n)
	}
	return nil
}

// CheckTwins returns an error if a list has duplicates.
func CheckTwins[T comparable](list []T) error {
	for i, v := range list {
		if slices.Contains(list[:i], v) {
			return fmt.Errorf("%v is there twice", v)
		}
	}
	return nil
}

// Cases returns the cases in the order of measurement: by ranks, then
// collective, type, operation, in or out of place, and length; then workloads.
func (p *Plan) Cases() (cases []Case) {
	for _, ranks := range p.Ranks {
		for _, collective := range p.Collectives {
			c := Case{Collective: collective, Ranks: ranks, Compute: p.Compute, Jitter: p.Jitter, Buckets: p.Buckets}
			coll := c.collective()
			if coll == ccl.CollBarrier {
				cases = append(cases, c)
				continue
			}
			if coll.Traits().Rooted {
				c.Root = p.Root
			}

			ops, forms := []string{""}, formsOf(coll)
			if coll.Traits().Reduces {
				ops = p.Ops
			}
			if len(forms) > 1 {
				forms = p.InPlace
			}

			c.Consume = p.Consume
			for _, c.DType = range p.DTypes {
				for _, c.Op = range ops {
					for _, c.InPlace = range forms {
						cases = append(cases, c.ofLengths(p.Bytes)...)
					}
				}
			}
		}

		for _, name := range p.Workloads {
			for _, wait := range []bool{true, false} {
				cases = append(cases, Case{Ranks: ranks, Compute: p.Compute, Wait: wait}.workload(name))
			}
		}
	}
	return cases
}

// formsOf returns the forms that the collective supports: in place (true), out of place.
func formsOf(coll ccl.Collective) []bool {
	switch {
	case coll == ccl.CollBarrier:
		return nil
	case coll == ccl.CollBroadcast: // has one buffer
		return []bool{true}
	case coll.Traits().Input == ccl.RankBlocks && coll.Traits().Output == ccl.RankBlocks: // would overwrite what others read
		return []bool{false}
	}
	return []bool{true, false}
}

// ofLengths returns c with each length: rounded up to whole elements, and scattered inputs
// rounded down to whole blocks, at least one element each.
func (c Case) ofLengths(lengths []int) (cases []Case) {
	size := c.elementSize()
	least := c.parts() * size
	for _, b := range lengths {
		c.Bytes = (b + size - 1) / size * size
		c.Bytes = max(least, c.Bytes/least*least)
		if !slices.Contains(cases, c) {
			cases = append(cases, c)
		}
	}
	return cases
}
