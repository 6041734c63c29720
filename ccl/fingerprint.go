package ccl

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/goccl/goccl/transport"
)

// A fingerprint is what all ranks of a call must agree on, in five words:
//
//	0  collective (8 bits), dtype (8), op (32, from bit 32)
//	1  count: elements of the vector; of a call on blocks, the sum of all blocks
//	2  root
//	3  the algorithm's entry
//	4  a hash of the lengths of blocks that are not alike
type fingerprint struct {
	coll   Collective
	dtype  DType
	op     uint32 // its fingerprintID
	count  int
	root   int
	entry  uint64
	counts uint64
}

func (f *fingerprint) encode() transport.Fingerprint {
	return transport.Fingerprint{
		uint64(f.coll) | uint64(f.dtype)<<8 | uint64(f.op)<<32,
		uint64(f.count), uint64(f.root), f.entry, f.counts,
	}
}

func fingerprintOf(p transport.Fingerprint) fingerprint {
	return fingerprint{
		coll: Collective(p[0]), dtype: DType(p[0] >> 8), op: uint32(p[0] >> 32),
		count: int(p[1]), root: int(p[2]), entry: p[3], counts: p[4],
	}
}

// entryID stands for an algorithm's entry in fingerprints: the FNV-1a hash of its name,
// which is the same in all processes.
func entryID(entry string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(entry))
	return h.Sum64()
}

// hash folds a fingerprint to one word: products of pairs of words, each word
// scrambled by a constant of its own, so that the multiplications run side by
// side.
func hash(p transport.Fingerprint) uint64 {
	return fold(p[0]^0x9e3779b97f4a7c15, p[1]^0xbf58476d1ce4e5b9) ^
		fold(p[2]^0x94d049bb133111eb, p[3]^0xd6e8feb86659fd93) ^
		fold(p[4]^0xa0761d6478bd642f, 0xe7037ed1a0b428db)
}

// fold returns the two halves of a product, mixed.
func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// mix is a bijection of 64 bits (the finalizer of MurmurHash3, A. Appleby).
func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	h ^= h >> 33
	return h
}

// hashCounts returns a hash of the lengths of blocks.
func hashCounts(counts []int) uint64 {
	h := uint64(len(counts))
	for _, n := range counts {
		h = mix(h ^ uint64(n))
	}
	return h
}

// differing is the error of a call that the ranks have entered with different
// fingerprints. All have published theirs and say the same. Of what fingerprints have
// but a hash the ranks tell each other the texts, in one more synchronisation, which all
// of them make.
func (c *Communicator) differing(err *transport.MismatchError) error {
	prints := make([]fingerprint, c.size)
	for r := range prints {
		prints[r] = fingerprintOf(c.ep.Fingerprint(r))
	}
	m, isHash := c.mismatch(prints)
	if isHash {
		seq := c.seq
		texts, err := c.exchange(c.entry.Ctx, []byte(c.hashedText(m.Field)))
		c.seq = seq // of the call that the error is about: there will be no other
		switch {
		case errors.Is(err, transport.ErrFailed):
			return err
		case err == nil:
			if said := disagreement(m.Field, m.said(texts)); said != nil {
				m = said
			}
		}
	}
	c.differ.Store(m)
	return m
}

// hashedText is what this rank's fingerprint has a hash of.
func (c *Communicator) hashedText(field string) string {
	r := &c.call.request
	if field == "op" {
		return r.op.String()
	}
	lengths := r.counts
	for _, t := range c.coalesced {
		lengths = append(lengths, t.Len())
	}
	switch {
	case lengths != nil:
	case r.each > 0:
		lengths = slices.Repeat([]int{r.each}, c.size)
	default:
		lengths = []int{r.count}
	}
	return strings.Trim(fmt.Sprint(lengths), "[]")
}

// said returns what ranks have said of the field: of lists of numbers that are long where
// the first difference is.
func (e *MismatchError) said(texts [][]byte) []string {
	said, long := make([]string, len(texts)), false
	lists := make([][]string, len(texts))
	shortest := math.MaxInt
	for r, text := range texts {
		said[r] = string(text)
		if e.Field == "op" {
			continue
		}
		lists[r] = strings.Fields(said[r])
		said[r] = "[" + said[r] + "]"
		long = long || len(text) > 80
		shortest = min(shortest, len(lists[r]))
	}
	if !long {
		return said
	}
	at := 0
	for at < shortest && !slices.ContainsFunc(lists, func(l []string) bool { return l[at] != lists[0][at] }) {
		at++
	}
	for r, l := range lists {
		said[r] = fmt.Sprintf("only %d numbers", len(l))
		if at < len(l) {
			said[r] = fmt.Sprintf("%s at index %d of %d", l[at], at, len(l))
		}
	}
	return said
}

// mismatch says in which field fingerprints differ, and whether they have but a hash of
// that.
func (c *Communicator) mismatch(prints []fingerprint) (m *MismatchError, isHash bool) {
	for _, field := range []struct {
		name string
		text func(f fingerprint) string
	}{
		{"collective", func(f fingerprint) string { return f.coll.String() }},
		{"dtype", func(f fingerprint) string { return f.dtype.String() }},
		{"op", func(f fingerprint) string {
			if f.op < hashed {
				return Op(f.op).String()
			}
			isHash = true
			return fmt.Sprintf("one with hash %08x", f.op)
		}},
		{"count", func(f fingerprint) string { return fmt.Sprint(f.count) }},
		{"root", func(f fingerprint) string { return fmt.Sprint(f.root) }},
		{lengthsField(prints[0].coll), func(f fingerprint) string {
			isHash = true
			return fmt.Sprintf("those with hash %08x", uint32(f.counts))
		}},
		{"algorithm", func(f fingerprint) string { return c.entryName(f.entry) }},
	} {
		texts := make([]string, c.size)
		for r, f := range prints {
			texts[r] = field.text(f)
		}
		if m := disagreement(field.name, texts); m != nil {
			return m, isHash
		}
		isHash = false
	}
	return &MismatchError{Field: "fingerprint"}, false
}

// disagreement groups ranks by what they say, in the order in which the values
// first appear; nil if all say the same.
func disagreement(field string, texts []string) *MismatchError {
	m := &MismatchError{Field: field}
	for r, text := range texts {
		m.add(text, r)
	}
	if len(m.Values) < 2 {
		return nil
	}
	return m
}

// add says that rank brought value.
func (e *MismatchError) add(value string, rank int) { e.addFor(value, "", rank) }

// addFor is add with a reason.
func (e *MismatchError) addFor(value, why string, rank int) {
	i := slices.IndexFunc(e.Values, func(v MismatchValue) bool { return v.Value == value && v.Why == why })
	if i < 0 {
		i = len(e.Values)
		e.Values = append(e.Values, MismatchValue{Value: value, Why: why})
	}
	e.Values[i].Ranks = append(e.Values[i].Ranks, rank)
}

// lengthsField returns what the fifth word is a hash of.
func lengthsField(coll Collective) string {
	if coll == collNewGroup {
		return "ranks"
	}
	return "counts"
}
