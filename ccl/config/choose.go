package config

import (
	"fmt"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/text"
)

// Choose returns the kernel for a shape, whose Params and Eager it ignores: the kernel of the entry
// force, unless force is empty; else of the configured algorithm; else of the first rule that
// matches. A rule without a collective matches those that its algorithm has a kernel for; a
// rule with an op matches only collectives that reduce.
//
// Choose never falls back to another entry. If the chosen one does not support the shape, or
// no rule matches, errors.Is finds ccl.ErrNotImplemented; the text names what chose the entry,
// why it does not support the shape, and which entries do. errors.As finds
// *ccl.KernelPanicError if the kernel's Supports panicked. If force is not an entry, or does
// not support this group, the error is a *ccl.InvalidArgumentError.
func (s *Settings) Choose(shape ccl.Shape, force string) (ccl.Choice, error) {
	k, why, err := s.pick(shape, force)
	if err != nil {
		return ccl.Choice{}, err
	}
	if err := k.supports(shape); err != nil {
		return ccl.Choice{}, &UnsupportedError{Shape: shape, Entry: k.entry.name, Reason: err, ChosenBy: why, Others: s.able(shape)}
	}
	return ccl.Choice{
		Entry:     k.entry.name,
		Algorithm: k.algorithm,
		Kernel:    k.algorithm.Kernels[shape.Collective],
		Params:    k.params,
		Why:       why,
	}, nil
}

// pick returns the entry for a shape, whether it supports the shape or not.
func (s *Settings) pick(shape ccl.Shape, force string) (k *candidate, why string, err error) {
	if force != "" {
		k = s.candidate(force)
		switch {
		case k == nil:
			return nil, "", &ccl.InvalidArgumentError{Operation: shape.Collective.String(), Message: s.config.file + ": " + s.config.unknownEntry(force)}
		case k.unfit != "":
			return nil, "", &ccl.InvalidArgumentError{Operation: shape.Collective.String(), Message: k.unfit}
		}
		return k, "option", nil
	}

	if s.algorithm.value != auto {
		why = s.config.locate(s.algorithm.origin)
		if s.algorithm.by == "" {
			why += ": defaults.algorithm"
		}
		return s.candidate(s.algorithm.value), why, nil
	}

	for i, r := range s.config.rules {
		if k := s.candidate(r.algorithm.value); r.matches(shape, k.algorithm) {
			why = fmt.Sprintf("%s: rule %d", s.config.locate(r.origin), i+1)
			if s.instead != "" {
				why += " (" + s.instead + ")"
			}
			return k, why, nil
		}
	}
	return nil, "", fmt.Errorf("ccl: %s: %w: no rule of %s matches; entries that can: %s",
		shape, ccl.ErrNotImplemented, s.config.file, text.List(s.able(shape)))
}

// takes reports whether the rule, which chooses the algorithm a, matches calls of the
// collective.
func (r *rule) takes(c ccl.Collective, a *ccl.Algorithm) bool {
	switch {
	case r.op.isSet() && !c.Traits().Reduces:
		return false
	case r.collective.isSet():
		return slices.Contains(r.collective.value, c)
	}
	return a.Kernels[c] != nil
}

// matches reports whether the rule, which chooses the algorithm a, matches the shape.
func (r *rule) matches(shape ccl.Shape, a *ccl.Algorithm) bool {
	return r.takes(shape.Collective, a) &&
		(!r.bytes.isSet() || within(ccl.ByteSize(shape.Bytes), r.bytes.value)) &&
		(!r.ranks.isSet() || within(shape.Ranks, r.ranks.value)) &&
		(!r.nodes.isSet() || within(nodesOf(shape), r.nodes.value)) &&
		(!r.dtype.isSet() || slices.Contains(r.dtype.value, shape.DType)) &&
		(!r.op.isSet() || slices.Contains(r.op.value, shape.Op))
}

// nodesOf returns the number of nodes of a group with two levels, else 1.
func nodesOf(shape ccl.Shape) int { return max(1, shape.Nodes) }

// supports returns why the entry does not support the shape, nil if it does.
func (k *candidate) supports(shape ccl.Shape) error {
	shape.Params, shape.Eager = k.params, false
	err := k.algorithm.Supports(shape)
	if panicked, ok := err.(*ccl.KernelPanicError); ok { //nolint:errorlint // not one that the kernel returned
		panicked.Kernel = k.entry.name + " " + shape.Collective.String()
	}
	return err
}

// able returns the entries that support the shape.
func (s *Settings) able(shape ccl.Shape) []string {
	var names []string
	for _, k := range s.candidates {
		if k.unfit == "" && k.supports(shape) == nil {
			names = append(names, k.entry.name)
		}
	}
	return names
}
