package main

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/goccl/goccl/dist"
)

// digest is the SHA-256 of a slice's bits.
type digest [sha256.Size]byte

func (d digest) String() string { return fmt.Sprintf("%x", d[:]) }

// sameOnAllRanks verifies that all ranks hold the same bits: every rank hashes
// its values, and the minimum and the maximum of each quarter of the hashes over all
// ranks must be the rank's own. It is a collective call; if any two ranks differ, it
// fails on all of them.
func sameOnAllRanks[F float](values []F) (digest, error) {
	hash := sha256.New()
	if err := binary.Write(hash, binary.LittleEndian, values); err != nil {
		return digest{}, err
	}
	sum := digest(hash.Sum(nil))

	own := make([]int64, sha256.Size/8)
	for i := range own {
		own[i] = int64(binary.LittleEndian.Uint64(sum[8*i:]))
	}
	low, high := slices.Clone(own), slices.Clone(own)
	if err := dist.AllReduce(low, dist.Min); err != nil {
		return sum, err
	}
	if err := dist.AllReduce(high, dist.Max); err != nil {
		return sum, err
	}
	if !slices.Equal(low, own) || !slices.Equal(high, own) {
		return sum, errors.New("the ranks' weights differ: a collective was skipped, or gave the ranks different results")
	}
	return sum, nil
}
