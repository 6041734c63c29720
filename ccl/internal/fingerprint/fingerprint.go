// Package fingerprint encodes what all ranks of a call must agree on.
//
// # Model
//
// A [Fingerprint] travels as five words, which are the same in all processes. What does not fit in
// a word is replaced by a hash. The ranks compare one word, the [Hash] of the five, and look at the
// words only if that differs.
package fingerprint

import (
	"math/bits"

	"github.com/goccl/goccl/transport"
)

// Fingerprint is what all ranks of a call must agree on. Its encoding has five words:
//
//	0  collective (8 bits), dtype (8), label (16, not compared), op (32)
//	1  count: elements of the vector, or of all blocks
//	2  root (32 bits), key (32)
//	3  the algorithm's entry
//	4  a hash of the lengths of blocks, if they differ
type Fingerprint struct {
	Collective, DType uint8
	Op, Key           uint32
	Count, Root       int
	Entry, Counts     uint64
}

// Encode returns the words of f.
func (f Fingerprint) Encode() transport.Fingerprint {
	return transport.Fingerprint{
		uint64(f.Collective) | uint64(f.DType)<<8 | uint64(f.Op)<<32,
		uint64(f.Count), uint64(uint32(f.Root)) | uint64(f.Key)<<32, f.Entry, f.Counts,
	}
}

// Decode is the inverse of Encode.
func Decode(p transport.Fingerprint) Fingerprint {
	return Fingerprint{
		Collective: uint8(p[0]), DType: uint8(p[0] >> 8), Op: uint32(p[0] >> 32),
		Count: int(p[1]), Root: int(uint32(p[2])), Key: uint32(p[2] >> 32), Entry: p[3], Counts: p[4],
	}
}

// EntryID stands for an algorithm's entry: the FNV-1a hash of its name.
func EntryID(entry string) uint64 {
	h := uint64(0xcbf29ce484222325)
	for i := range len(entry) {
		h = (h ^ uint64(entry[i])) * 0x100000001b3
	}
	return h
}

// KeyID stands for the key of a call: a hash of it, or 0 if there is none.
func KeyID(key string) uint32 {
	if key == "" {
		return 0
	}
	return uint32(Mix(EntryID(key))) | 1
}

// LabelBits are the bits of word 0 that stand for a call's label. Ranks may differ in them, so Hash
// does not get them.
const LabelBits = 0xffff << 16

// WithLabel returns a fingerprint with the bits for a label.
func WithLabel(p transport.Fingerprint, label string) transport.Fingerprint {
	p[0] |= uint64(KeyID(label)) & LabelBits
	return p
}

// Hash reduces a fingerprint to one word: the products of pairs of words, each word scrambled by
// a constant of its own, so that the processor multiplies in parallel.
func Hash(p transport.Fingerprint) uint64 {
	return multiply(p[0]^0x9e3779b97f4a7c15, p[1]^0xbf58476d1ce4e5b9) ^
		multiply(p[2]^0x94d049bb133111eb, p[3]^0xd6e8feb86659fd93) ^
		multiply(p[4]^0xa0761d6478bd642f, 0xe7037ed1a0b428db)
}

// multiply returns the xor of the two halves of a product.
func multiply(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// Mix is a bijection of 64 bits (the finalizer of MurmurHash3, A. Appleby).
func Mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	h ^= h >> 33
	return h
}

// HashCounts returns a hash of the lengths of blocks.
func HashCounts(counts []int) uint64 {
	h := uint64(len(counts))
	for _, n := range counts {
		h = Mix(h ^ uint64(n))
	}
	return h
}
