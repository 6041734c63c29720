package ccl

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goccl/goccl/ccl/internal/diagnose"
	"github.com/goccl/goccl/ccl/internal/fingerprint"
	"github.com/goccl/goccl/ccl/internal/reasons"
	"github.com/goccl/goccl/transport"
)

// differing returns the error of a call that ranks have entered with different fingerprints. All
// ranks read the same fingerprints and return the same error. If the fingerprints have only a
// hash of the field that differs, all ranks exchange its text in one more synchronisation.
func (e *engine) differing(err *transport.MismatchError) error {
	prints := make([]fingerprint.Fingerprint, e.size)
	for r := range prints {
		prints[r] = fingerprint.Decode(e.ep.Fingerprint(r))
	}
	m, isHash := e.mismatch(prints)
	if isHash {
		seq := e.seq
		texts, err := e.exchange(e.entry.Ctx, e.hashedText(m.Field))
		e.seq = seq // of the call that the error is about; the group makes no other
		switch {
		case errors.Is(err, transport.ErrFailed):
			return err

		case err == nil:
			field := m.Field
			switch field {
			case "op", "key":
			case "lists":
				field, texts = differingList(texts)
				diagnose.Shorten(texts)
			default:
				diagnose.Shorten(texts)
			}

			if found := disagreement(field, texts); found != nil {
				m = found
			}
		}
	}
	e.failures.differ.Store(m)
	return m
}

// differingList returns the first list that ranks differ in, and its text on each rank. texts are
// the lists of each rank.
func differingList(texts []string) (field string, lists []string) {
	all, most := make([][]string, len(texts)), 0
	for r, text := range texts {
		all[r] = slices.Collect(strings.Lines(text))
		most = max(most, len(all[r]))
	}

	lists = make([]string, len(texts))
	for i := range most {
		for r := range lists {
			lists[r] = "none"
			if i < len(all[r]) {
				lists[r] = strings.TrimSuffix(all[r][i], "\n")
			}
		}
		if slices.ContainsFunc(lists, func(l string) bool { return l != lists[0] }) {
			return fmt.Sprint("list ", i), lists
		}
	}

	return "lists", texts
}

// hashedText returns the text of the field that this rank's fingerprint has a hash of.
func (e *engine) hashedText(field string) string {
	r := &e.call.request
	switch field {
	case "op":
		return r.op.String()
	case "key":
		return keyText(r.opts.key)
	case "ranks":
		return fmt.Sprint(r.counts[1:])
	case "lists":
		return listsText(r.counts)
	}

	lengths := r.counts
	for _, t := range e.scratch.coalesced {
		lengths = append(lengths, t.Len())
	}
	switch {
	case lengths != nil:
	case r.each > 0:
		lengths = slices.Repeat([]int{r.each}, e.size)
	default:
		lengths = []int{r.count}
	}
	return fmt.Sprint(lengths)
}

// mismatch returns the first field in which fingerprints differ, and whether they have only a
// hash of it.
func (e *engine) mismatch(prints []fingerprint.Fingerprint) (m *MismatchError, isHash bool) {
	lengths := "counts"
	switch Collective(prints[0].Collective) {
	case collNewGroup:
		lengths = "ranks"
	case collForm:
		lengths = "lists"
	}

	for _, field := range []struct {
		name string

		text func(f fingerprint.Fingerprint) string
	}{
		{"collective", func(f fingerprint.Fingerprint) string { return Collective(f.Collective).String() }},
		{"key", func(f fingerprint.Fingerprint) string {
			isHash = true

			return fmt.Sprintf("one with hash %08x", f.Key)
		}},
		{"dtype", func(f fingerprint.Fingerprint) string { return DType(f.DType).String() }},
		{"op", func(f fingerprint.Fingerprint) string {
			if f.Op < hashed {
				return Op(f.Op).String()
			}

			isHash = true
			return fmt.Sprintf("one with hash %08x", f.Op)
		}},
		{"count", func(f fingerprint.Fingerprint) string { return fmt.Sprint(f.Count) }},
		{"root", func(f fingerprint.Fingerprint) string { return fmt.Sprint(f.Root) }},
		{lengths, func(f fingerprint.Fingerprint) string {
			isHash = true
			return fmt.Sprintf("those with hash %08x", uint32(f.Counts))
		}},
		{"algorithm", func(f fingerprint.Fingerprint) string { return e.entryName(f.Entry) }},
	} {
		texts := make([]string, e.size)

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

func keyText(key string) string {
	if key == "" {
		return "none"
	}
	return strconv.Quote(key)
}

// disagreement groups the ranks by their values, in the order in which the values first appear.
// It returns nil if all values are equal.
func disagreement(field string, texts []string) *MismatchError {
	m := &MismatchError{Field: field}
	for r, text := range texts {
		m.add(MismatchValue{Value: text}, r)
	}
	if len(m.Values) < 2 {
		return nil
	}
	return m
}

// add adds a rank to those of v, whose Ranks are not read.
func (e *MismatchError) add(v MismatchValue, rank int) {
	i := slices.IndexFunc(e.Values, func(other MismatchValue) bool {
		return other.Value == v.Value && other.Why == v.Why
	})
	if i < 0 {
		i = len(e.Values)
		v.Ranks = nil
		e.Values = append(e.Values, v)
	}
	e.Values[i].Ranks = append(e.Values[i].Ranks, rank)
}

// sameMemory returns the mismatch of a call that writes memory which several ranks brought.
func sameMemory(ranks []int, size int) *MismatchError {
	m := &MismatchError{Field: buffersField, Values: []MismatchValue{{Value: "the same memory", Ranks: slices.Clone(ranks)}}}
	for r := range size {
		if !slices.Contains(ranks, r) {
			m.add(MismatchValue{Value: "memory of its own"}, r)
		}
	}
	return m
}

// rejectedBySome returns the mismatch of a call that some ranks rejected.
func rejectedBySome(f *transport.Failure, size int) *MismatchError {
	values := make([]MismatchValue, size)
	for i, why := range reasons.Read(f.Text, len(f.Ranks)) {
		values[f.Ranks[i]] = MismatchValue{Outcome: transport.OutcomeRejected, Why: why}
	}
	for _, r := range f.Missing {
		values[r].Outcome = transport.OutcomeAbsent
	}

	m := &MismatchError{Field: "arguments"}
	for r, v := range values {
		v.Outcome = cmp.Or(v.Outcome, transport.OutcomeAccepted)
		v.Value = v.Outcome.String()
		m.add(v, r)
	}
	return m
}
