package main

import "math/rand/v2"

// sampler distributes the indices 0..samples-1 to the ranks in every epoch, by
// the rule of torch's DistributedSampler (shuffle=True, drop_last=False): all
// ranks compute the same permutation from seed+epoch, pad it to a multiple of
// ranks by repeating its start, and rank r takes every ranks-th index
// from the r-th on.
//
// All shards therefore have the same length, so that the mean over the ranks of
// their mean gradients is the mean over all samples. The k-th batches of
// all ranks together are the k-th part of the padded permutation.
type sampler struct {
	samples, ranks, rank int
	seed                 uint64
}

// indices returns the rank's shard of the epoch: ceil(samples/ranks) indices.
func (s sampler) indices(epoch int) []int {
	order := rand.New(rand.NewPCG(s.seed+uint64(epoch), 0)).Perm(s.samples)
	shard := make([]int, (s.samples+s.ranks-1)/s.ranks)
	for i := range shard {
		shard[i] = order[(s.rank+i*s.ranks)%s.samples]
	}
	return shard
}
