package ccl

import (
	"fmt"
	"runtime/debug"
	"slices"
)

// Choice is the kernel that does the calls of one shape, and why.
type Choice struct {
	Entry     string     // the entry in ccl.yaml
	Algorithm *Algorithm // its module
	Kernel    *Kernel
	Params    any    // of the entry; nil if the algorithm has none
	Why       string // "ccl.yaml:31: rule 1", "ccl.yaml:5: defaults.algorithm", or "option"
}

// Choose returns the kernel for a shape, whose Params and Eager it ignores: the
// entry called force, if not empty; else the algorithm that is configured; else
// that of the first rule that matches. A rule that names no collective is for
// those that its algorithm has a kernel for, and one with an op for collectives
// that reduce.
//
// What was chosen is never replaced in silence. If it cannot do the shape, or
// no rule matches, the error wraps ErrNotImplemented, says who chose it and why
// it cannot, and names the entries that can (S4.13); *KernelPanicError is in it if the kernel
// panicked when it was asked. If force is no entry, or one
// that is not for this group, the error is an *InvalidArgumentError.
func (s *Settings) Choose(shape Shape, force string) (Choice, error) {
	k, why, err := s.pick(shape, force)
	if err != nil {
		return Choice{}, err
	}
	if err := k.refuse(shape); err != nil {
		return Choice{}, fmt.Errorf("ccl: %s: %w by %s: %w (chosen by %s); entries that can: %s",
			shapeText(shape), ErrNotImplemented, k.entry.name, err, why, list(s.able(shape)))
	}
	return Choice{
		Entry:     k.entry.name,
		Algorithm: k.algorithm,
		Kernel:    k.algorithm.Kernels[shape.Collective],
		Params:    k.params,
		Why:       why,
	}, nil
}

// pick returns the entry that is to do the shape, able or not.
func (s *Settings) pick(shape Shape, force string) (k *candidate, why string, err error) {
	if force != "" {
		k = s.candidate(force)
		switch {
		case k == nil:
			return nil, "", &InvalidArgumentError{shape.Collective.String(), s.config.file + ": " + s.config.unknownEntry(force)}
		case k.unfit != "":
			return nil, "", &InvalidArgumentError{shape.Collective.String(), k.unfit}
		}
		return k, "option", nil
	}
	if s.algorithm.value != auto {
		why = s.config.place(s.algorithm.origin)
		if s.algorithm.by == "" {
			why += ": defaults.algorithm"
		}
		return s.candidate(s.algorithm.value), why, nil
	}
	for i, r := range s.config.rules {
		if k := s.candidate(r.algorithm.value); r.matches(shape, k.algorithm) {
			why = fmt.Sprintf("%s: rule %d", s.config.place(r.origin), i+1)
			if s.instead != "" {
				why += " (" + s.instead + ")"
			}
			return k, why, nil
		}
	}
	return nil, "", fmt.Errorf("ccl: %s: %w: no rule of %s matches; entries that can: %s",
		shapeText(shape), ErrNotImplemented, s.config.file, list(s.able(shape)))
}

// takes reports whether the rule, which chooses the algorithm a, is for the
// collective: the one that it names, or those that a has a kernel for, and of
// these the ones that reduce if it names an op.
func (r *rule) takes(c Collective, a *Algorithm) bool {
	switch {
	case r.op.isSet() && !c.Reduces():
		return false
	case r.collective.isSet():
		return r.collective.value == c
	}
	return a.Kernels[c] != nil
}

// matches reports whether the rule, which chooses the algorithm a, is for the shape.
func (r *rule) matches(shape Shape, a *Algorithm) bool {
	return r.takes(shape.Collective, a) &&
		(!r.bytes.isSet() || r.bytes.value.contains(ByteSize(shape.Bytes))) &&
		(!r.ranks.isSet() || r.ranks.value.contains(shape.Ranks)) &&
		(!r.dtype.isSet() || r.dtype.value == shape.DType) &&
		(!r.op.isSet() || r.op.value == shape.Op)
}

// refuse says why the entry cannot do the shape, nil if it can.
func (k *candidate) refuse(shape Shape) error {
	kernel := k.algorithm.Kernels[shape.Collective]
	if kernel == nil {
		return fmt.Errorf("algorithm %s has no kernel for %s", k.algorithm.Name, shape.Collective)
	}
	if shape.Collective.Reduces() && !kernel.Ordered && !shape.Op.commutes() {
		return fmt.Errorf("operation %v does not commute, and the kernel does not keep the order of ranks", shape.Op)
	}
	if kernel.Supports == nil {
		return nil
	}
	shape.Params = k.params
	shape.Eager = false
	return k.supports(kernel, shape)
}

// supports asks the kernel. One that panics does not support the shape.
func (k *candidate) supports(kernel *Kernel, shape Shape) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &KernelPanicError{Kernel: k.entry.name + " " + shape.Collective.String(), Value: v, Stack: debug.Stack()}
		}
	}()
	return kernel.Supports(shape)
}

// able returns the entries that can do the shape.
func (s *Settings) able(shape Shape) []string {
	var names []string
	for _, k := range s.candidates {
		if k.unfit == "" && k.refuse(shape) == nil {
			names = append(names, k.entry.name)
		}
	}
	return names
}

// shapeText describes a shape for a message:
// "all_reduce (float32, sum, 65536 bytes, 4 ranks)".
func shapeText(s Shape) string {
	text := s.Collective.String() + " ("
	if slices.Contains(DTypes(), s.DType) {
		text += s.DType.String() + ", "
	}
	if s.Collective.Reduces() {
		text += s.Op.String() + ", "
	}
	return text + fmt.Sprintf("%d bytes, %d ranks)", s.Bytes, s.Ranks)
}
