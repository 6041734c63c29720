package main

import "github.com/mmcloughlin/avo/operand"

// An element is an element type. Its name is part of the names of the functions.
type element struct {
	name       string
	operations []operation
	half       func(m *machine) half // nil: elements are the same in memory and in registers
}

// A half converts elements of 16 bits to float32 and back. The function that returns it is called
// at the start of an operation, where it loads constants.
type half struct {
	widen  func(from operand.Op, to vector) // from memory or the lower half of a register
	narrow func(x vector)                   // to the lower half of x
}

// An operation of a type. step and finish are called at the start of the operation, where they
// load constants.
type operation struct {
	name   string
	number uint64 // of its Op
	step   func(m *machine) step
	finish func(m *machine) finish // nil: no last step
}

// A step writes x = x op y. It does not change y.
type step func(x vector, y operand.Op)

// A finish writes the division of an average for all of x. Its labels start with label. It may
// jump to label + "Finished", which its caller defines after it.
type finish func(label string, x []vector)

// elements are the types that have a function: the ones that training loops reduce. Package reduce
// uses these functions for other types where the bits are the same; see its table kernels.
var elements = []element{
	{name: "Uint8", operations: []operation{
		{"sum", 0, plain((*context).VPADDB), divideUint8},
		{"product", 2, multiplyBytes, nil},
		{"minimum", 3, plain((*context).VPMINUB), nil},
		{"maximum", 4, plain((*context).VPMAXUB), nil},
		{"and", 5, bitwise((*context).VPAND), nil}, // for all integers, like the next two
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

// bfloat16s is the only type for which AVX-512 is faster than AVX2 outside of the first-level
// cache: rounding takes many instructions, and AVX-512 needs half as many.
var bfloat16s = element{name: "BFloat16", operations: float32s, half: bfloat16}

var float32s = []operation{
	{"sum", 0, plain((*context).VADDPS), divideFloat((*context).VMULPS, (*context).VDIVPS)},
	{"product", 2, plain((*context).VMULPS), nil},
	{"minimum", 3, minimumFloat((*context).VMINPS), nil},
	{"maximum", 4, maximumFloat((*context).VMAXPS, (*context).VSUBPS), nil},
}

// An instruction writes x = y op z. Its operands are z, y and x, in this order.
type instruction = func(c *context, ops ...operand.Op)

// plain is an operation that is one instruction.
func plain(op instruction) func(*machine) step {
	return func(m *machine) step {
		return func(x vector, y operand.Op) { op(m.context, y, x, x) }
	}
}

// bitwise is plain for the operations on bits, whose methods are not variadic.
func bitwise(op func(c *context, y, x, to operand.Op)) func(*machine) step {
	return func(m *machine) step {
		return func(x vector, y operand.Op) { op(m.context, y, x, x) }
	}
}
