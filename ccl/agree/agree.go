// Package agree lets the ranks of a group go on together, or all get the same error: if what they
// have differs, or if one of them could not do its part.
//
// It is for packages that stand on package ccl and take more than one call for what they do.
//
// # Model
//
// [Compare] compares facts, which are values with names. [Exchange] shows the numbers of each rank
// to all. A rank can bring an error to both instead. [Difference] compares what all ranks know.
//
// # Concurrency
//
// Compare and Exchange are synchronous collectives, as those of package ccl. WithWork is a
// *ccl.InvalidArgumentError.
//
// # Failure
//
// If ranks bring an error, all get a [RejectedError]. If facts differ, all get the same
// *ccl.MismatchError. After both the group is intact. They name no group: their ranks are those of
// the first group, see ccl.Communicator.GlobalRank. Other errors are those of ccl.AllGather.
package agree

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/transport"
)

// Fact is a value that a rank brings to Compare, under a name that tells it from the rank's others.
type Fact struct{ Name, Value string }

// RejectedError reports that ranks brought an error to Compare or Exchange.
//
// A rank that brought an error gets its own. The others get the text of the first rank that did,
// of which they know the first 1,024 bytes.
type RejectedError struct {
	Ranks []int // all ranks of which the error has this text, ascending
	Err   error
}

func (e *RejectedError) Error() string { return transport.RanksText(e.Ranks) + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *RejectedError) Unwrap() error { return e.Err }

// Compare returns nil on all ranks if they bring the same facts, and otherwise an error on all.
//
// A rank brings facts, or the error because of which it has none. The *ccl.MismatchError has the
// first fact that differs, in the order of the first rank that brings it; the value is "none" for
// ranks that do not. Values are compared and shown whole: bring a checksum of what is long.
//
// Ranks that agree exchange 48 bytes each, however many facts they have.
func Compare(ctx context.Context, c *ccl.Communicator, failed error, facts []Fact, opts ...ccl.CallOption) error {
	var text []byte
	for _, f := range facts {
		text = fmt.Appendf(text, "%q %q\n", f.Name, f.Value)
	}

	digest := sha256.Sum256(text)
	announced := []int{len(text)}
	for word := range slices.Chunk(digest[:], 8) {
		announced = append(announced, int(binary.LittleEndian.Uint64(word)))
	}
	all, err := Exchange(ctx, c, failed, announced, opts...)
	if err != nil {
		return err
	}

	var lengths []int
	isSame := true
	for other := range slices.Chunk(all, len(announced)) {
		lengths = append(lengths, other[0])
		isSame = isSame && slices.Equal(other, announced)
	}

	if isSame {
		return nil
	}
	texts, err := exchangeTexts(ctx, c, text, lengths, maxFactBytes, opts)
	if err != nil {
		return err
	}
	return differingFact(c, texts)
}

// maxFactBytes bounds the facts of a rank, names and values together.
const maxFactBytes = 64 << 20

// differingFact returns the first fact in which ranks differ.
func differingFact(c *ccl.Communicator, texts [][]byte) error {
	var names []string
	values := map[string][]string{}

	for r, text := range texts {
		var f Fact

		for lines := bytes.NewReader(text); ; {
			if _, err := fmt.Fscanf(lines, "%q %q\n", &f.Name, &f.Value); err != nil {
				break
			}
			if values[f.Name] == nil {
				names = append(names, f.Name)
				values[f.Name] = slices.Repeat([]string{"none"}, len(texts))
			}
			values[f.Name][r] = f.Value
		}
	}

	for _, name := range names {
		if err := Difference(c, name, maps.Collect(slices.All(values[name]))); err != nil {
			return err
		}
	}
	return nil // they have the same facts in different orders
}

// Difference returns the *ccl.MismatchError of ranks of c that have different values of a field, or
// nil. The values are by rank, and known to all: it is no call.
func Difference(c *ccl.Communicator, field string, values map[int]string) error {
	m := &ccl.MismatchError{Field: field}
	for _, r := range slices.Sorted(maps.Keys(values)) {
		i := slices.IndexFunc(m.Values, func(v ccl.MismatchValue) bool { return v.Value == values[r] })
		if i < 0 {
			i = len(m.Values)
			m.Values = append(m.Values, ccl.MismatchValue{Value: values[r]})
		}
		m.Values[i].Ranks = append(m.Values[i].Ranks, c.GlobalRank(r))
		slices.Sort(m.Values[i].Ranks)
	}

	if len(m.Values) < 2 {
		return nil
	}
	return m
}

// Exchange returns the numbers of all ranks, in rank order.
//
// All ranks bring as many, also with an error, where their values do not matter.
func Exchange(ctx context.Context, c *ccl.Communicator, failed error, numbers []int, opts ...ccl.CallOption) ([]int, error) {
	if isAsynchronous(opts) {
		return nil, c.Reject(ctx, &ccl.InvalidArgumentError{Operation: "exchange", Message: "WithWork starts collectives that return nothing but an error"})
	}
	var reason []byte
	if failed != nil {
		reason = []byte(failed.Error())
		reason = bytes.ToValidUTF8(reason[:min(len(reason), maxReasonBytes)], nil)
		if len(reason) == 0 {
			reason = []byte("an error without a text")
		}
	}

	words := append([]int{len(reason)}, numbers...)
	all := make([]int, max(0, len(words)*c.Size()))
	if err := ccl.AllGather(ctx, c, words, all, opts...); err != nil {
		return nil, err
	}

	var lengths []int
	others, isRejected := all[:0], false
	for words := range slices.Chunk(all, len(words)) {
		lengths = append(lengths, words[0])
		isRejected = isRejected || words[0] != 0
		others = append(others, words[1:]...) // over words
	}
	if !isRejected {
		return others, nil
	}
	reasons, err := exchangeTexts(ctx, c, reason, lengths, maxReasonBytes, opts)
	if err != nil {
		return nil, err
	}
	return nil, rejectedBy(c, reasons, failed)
}

// isAsynchronous reports whether an option is WithWork: then another one in front of it changes
// nothing, since of several Works the last one counts.
func isAsynchronous(opts []ccl.CallOption) bool {
	merged := ccl.WithTorchNames(opts...)
	return ccl.WithTorchNames(ccl.WithWork(new(ccl.Work)), merged) == merged
}

// maxReasonBytes bounds the part of an error's text that other ranks get.
const maxReasonBytes = 1 << 10

// rejectedBy returns the error of a rank in an exchange to which ranks brought errors. failed is
// the rank's, if it did.
func rejectedBy(c *ccl.Communicator, reasons [][]byte, failed error) error {
	rank := c.Rank()
	if failed == nil {
		rank = slices.IndexFunc(reasons, func(reason []byte) bool { return len(reason) > 0 })
		failed = errors.New(string(reasons[rank]))
	}

	e := &RejectedError{Err: failed}
	for r, reason := range reasons {
		if bytes.Equal(reason, reasons[rank]) {
			e.Ranks = append(e.Ranks, c.GlobalRank(r))
		}
	}
	slices.Sort(e.Ranks)
	return e
}

// exchangeTexts returns the texts of all ranks, of which the lengths are known to all.
func exchangeTexts(
	ctx context.Context, c *ccl.Communicator, text []byte, lengths []int, limit int, opts []ccl.CallOption,
) ([][]byte, error) {
	total := 0
	for r, n := range lengths {
		if n < 0 || n > limit {
			return nil, &RejectedError{Ranks: []int{c.GlobalRank(r)}, Err: fmt.Errorf("it announces a text of %d bytes, and at most %d are possible", n, limit)}
		}
		total += n
	}
	all := make([]byte, total)
	if err := ccl.AllGatherV(ctx, c, text, all, lengths, nil, opts...); err != nil {
		return nil, err
	}

	texts := make([][]byte, len(lengths))
	for r, n := range lengths {
		texts[r], all = all[:n:n], all[n:]
	}
	return texts, nil
}
