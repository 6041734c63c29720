package ddp

import (
	"math/rand/v2"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/dist"
)

// Sampler deals out the samples of a data set to ranks (DistributedSampler of torch): rank r gets
// the samples at r, r+Ranks, r+2*Ranks, ... of an order that is the same on all ranks. All ranks
// get equally many, unless Uneven is set.
//
// A Sampler does not change; its methods may be called concurrently.
type Sampler struct {
	Samples, Ranks, Rank int
	Group                *dist.ProcessGroup // if not nil, it has Ranks and Rank, which are not set then
	Seed                 uint64             // Seed + epoch gives the order; the same on all ranks
	InOrder              bool               // do not shuffle
	DropLast             bool               // leave out samples that do not fill all ranks, instead of repeating the first ones
	Uneven               bool               // deal out each sample once, for evaluation: the ranks' lengths may differ by one

	// Shards deals samples out to so many logical shards in place of ranks: see Options.LogicalShards.
	// This rank gets those of the shards that it hosts, one shard after the other.
	Shards int
}

// Check returns nil, or a *ccl.InvalidArgumentError that says which field is wrong.
func (s Sampler) Check() error {
	_, err := s.resolve()
	return err
}

// resolve returns the sampler with the ranks of its group, or what is wrong with it.
func (s Sampler) resolve() (Sampler, error) {
	if s.Group != nil {
		if s.Ranks != 0 || s.Rank != 0 {
			return s, invalid("ddp.Sampler", "Group is set, and Ranks is %d and Rank %d: set either", s.Ranks, s.Rank)
		}
		s.Ranks, s.Rank, s.Group = s.Group.Size(), s.Group.Rank(), nil
	}

	switch {
	case s.Ranks < 1:
		return s, invalid("ddp.Sampler", "Ranks is %d, and must be at least 1: set Ranks and Rank, or Group", s.Ranks)
	case s.Rank < 0 || s.Rank >= s.Ranks:
		return s, invalid("ddp.Sampler", "Rank is %d of %d Ranks, and must be at least 0 and less than Ranks", s.Rank, s.Ranks)
	case s.Samples < 0:
		return s, invalid("ddp.Sampler", "Samples is %d, and must be at least 0", s.Samples)
	// What excludes each other.
	case s.Shards != 0 && s.Shards < s.Ranks:
		return s, invalid("ddp.Sampler", "Shards is %d for %d Ranks: each rank needs one at least", s.Shards, s.Ranks)
	case s.Shards > mostShards:
		return s, invalid("ddp.Sampler", "Shards is %d: at most %d are possible", s.Shards, mostShards)
	case s.Shards != 0 && s.Uneven:
		return s, invalid("ddp.Sampler", "Shards and Uneven are set: all shards have equally many samples")
	case s.DropLast && s.Uneven:
		return s, invalid("ddp.Sampler", "DropLast and Uneven are set: the one leaves out the last samples, the other does not; set one of them")
	}
	return s, nil
}

// Len returns the number of samples of this rank in an epoch; 0 if Check returns an error.
func (s Sampler) Len() int {
	s, err := s.resolve()
	if err != nil {
		return 0
	}
	low, high, all := s.share()
	n, rest := s.Samples/all, s.Samples%all
	if rest > 0 && !s.DropLast && (!s.Uneven || s.Rank < rest) {
		n++
	}
	return (high - low) * n
}

// share returns which of those to whom samples are dealt out this rank is: one rank of all, or some
// shards.
func (s Sampler) share() (low, high, all int) {
	if s.Shards == 0 {
		return s.Rank, s.Rank + 1, s.Ranks
	}
	low, high = ccl.BlockRange(s.Shards, s.Rank, s.Ranks)
	return low, high, s.Shards
}

// Indices returns this rank's samples in an epoch. It depends on nothing else than s and the epoch.
// It panics with the error of Check, which a Loader returns.
func (s Sampler) Indices(epoch int) []int {
	s, err := s.resolve()
	if err != nil {
		panic(err)
	}
	indices := make([]int, s.Len())
	low, high, all := s.share()
	each := len(indices) / (high - low)
	for i := range indices {
		at := uint64(i%each)*uint64(all) + uint64(low+i/each) // at most Samples + all
		indices[i] = int(at % uint64(s.Samples))
	}

	if !s.InOrder {
		order := rand.New(rand.NewPCG(s.Seed+uint64(epoch), 0)).Perm(s.Samples)
		for i, at := range indices {
			indices[i] = order[at]
		}
	}
	return indices
}
