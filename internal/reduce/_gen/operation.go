package main

import "github.com/mmcloughlin/avo/operand"

// An element is a type of elements, by the name that the functions have.
type element struct {
	name       string
	operations []operation
	half       func(m *machine) half // nil: elements lie in memory as they are reduced
}

// A half says how elements of 16 bits become float32s and these become elements
// again. Its function is called where an operation begins, for its constants.
type half struct {
	widen  func(from operand.Op, to vector) // from memory or the lower half of a register
	narrow func(x vector)                   // to the lower half of x
}

// An operation of a type. Both functions are called where the operation begins,
// for its constants.
type operation struct {
	name   string
	number uint64 // of its Op
	step   func(m *machine) step
	finish func(m *machine) finish // nil: there is nothing to finish
}

// A step writes x = x op y. It does not change y.
type step func(x vector, y operand.Op)

// A finish writes the division of an average for all of x. Its labels begin with
// label; it may jump to label + "Finished", which follows.
type finish func(label string, x []vector)

// The types that have a function: those that training loops reduce. Package reduce
// reduces another type as one of these where the bits are the same; its table says which.
var elements = []element{
	{name: "Uint8", operations: []operation{
		{"sum", 0, plain((*context).VPADDB), divideUint8},
		{"product", 2, multiplyBytes, nil},
		{"minimum", 3, plain((*context).VPMINUB), nil},
		{"maximum", 4, plain((*context).VPMAXUB), nil},
		{"and", 5, bitwise((*context).VPAND), nil}, // of all integers, as the next two
		{"or", 6, bitwise((*context).VPOR), nil},
		{"xor", 7, bitwise((*context).VPXOR), nil},
	}},
	{name: "Int32", operations: []operation{
		{"sum", 0, plain((*context).VPADDD), divideInt32},
		{"product", 2, plain((*context).VPMULLD), nil},
		{"minimum", 3, plain((*context).VPMINSD), nil},
		{"maximum", 4, plain((*context).VPMAXSD), nil},
	}},
	{name: "Int64", operations: []operation{
		{"sum", 0, plain((*context).VPADDQ), divideInt64},
		{"product", 2, multiplyInt64, nil},
		{"minimum", 3, minimumInt64, nil},
		{"maximum", 4, maximumInt64, nil},
	}},
	{name: "Float32", operations: float32s},
	{name: "Float64", operations: []operation{
		{"sum", 0, plain((*context).VADDPD), divideFloat((*context).VMULPD, (*context).VDIVPD)},
		{"product", 2, plain((*context).VMULPD), nil},
		{"minimum", 3, minimumFloat((*context).VMINPD), nil},
		{"maximum", 4, maximumFloat((*context).VMAXPD, (*context).VSUBPD), nil},
	}},
	{name: "Float16", operations: float32s, half: float16},
	bfloat16s,
}

// bfloat16s is the one type for which AVX-512 is faster than AVX2 where data is not in the
// first-level cache: rounding takes many instructions, which AVX-512 halves.
var bfloat16s = element{name: "BFloat16", operations: float32s, half: bfloat16}

var float32s = []operation{
	{"sum", 0, plain((*context).VADDPS), divideFloat((*context).VMULPS, (*context).VDIVPS)},
	{"product", 2, plain((*context).VMULPS), nil},
	{"minimum", 3, minimumFloat((*context).VMINPS), nil},
	{"maximum", 4, maximumFloat((*context).VMAXPS, (*context).VSUBPS), nil},
}

// An instruction writes x = y op z; its operands are z, y and x.
type instruction = func(c *context, ops ...operand.Op)

// plain is an operation that is one instruction.
func plain(op instruction) func(*machine) step {
	return func(m *machine) step {
		return func(x vector, y operand.Op) { op(m.context, y, x, x) }
	}
}

// bitwise is plain for the operations on bits, which are no variadic methods.
func bitwise(op func(c *context, y, x, to operand.Op)) func(*machine) step {
	return func(m *machine) step {
		return func(x vector, y operand.Op) { op(m.context, y, x, x) }
	}
}
