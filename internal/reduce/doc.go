// Package reduce has the innermost loops of collective reductions: they reduce two buffers,
// or many into many, element by element.
//
// # Model
//
// A [Type] is the type of elements, an [Op] the operation; [Defined] reports whether they go
// together. [Pair] reduces two buffers, [Many] any number of sources into any number of
// destinations in one pass over memory, and [Divide] is the last step of [Avg]. [Many]
// divides by itself; a caller of [Pair] divides after the last sum. [Scan] stores every
// partial result, [Scale] multiplies a buffer by a factor, and [Truth] makes 0 and 1 of integers.
//
// The bits are part of the contract, because ranks compare them:
//
//   - A reduction goes from left to right and starts from the first source:
//     ((x0 op x1) op x2) op x3. It does not start from a neutral element, which
//     would turn a negative zero into a positive one.
//   - Every step is rounded to the element's type. Nothing is contracted into
//     a fused multiply-add.
//   - Float16 and BFloat16 are reduced in float32: [Many] widens every source, which
//     is exact, holds the result in float32 from the first source to the division of
//     Avg, and rounds once, to nearest even, when it stores. A [Pair] or [Divide] is
//     one operation and rounds once per call, as torch does on CPUs for each of its
//     operations; a reduction of many is more exact than a chain of pairs. What is too
//     large becomes infinity, subnormals are kept, and NaN comes out quiet.
//   - Integers wrap around.
//   - A bool is a byte, 0 or 1. Of other bytes the result is that of uint8.
//   - Complex numbers are two floats. Sum adds the parts separately, Avg divides both,
//     and a product is (ac-bd) + (ad+bc)i, in which each product, the difference and the
//     sum are rounded. An infinity that becomes NaN on the way is not recovered.
//   - Min and Max of floats give NaN if one operand is NaN, whatever its
//     position, and order -0 below +0. Which of the possible NaNs results, from
//     any operation, is not specified.
//   - Avg is Sum, then one division by the number of ranks. Integers, whose sum
//     wraps like any other, are truncated toward zero.
//   - A result of [Scan] is what [Many] gives for the same sources: halves are rounded
//     when they are stored, while the reduction continues in float32.
//
// Buffers are raw memory aligned to their element, no more: they may lie in a
// Go slice or in a mapping shared by processes.
//
// The loops are plain generic Go over slices; only the files that say so make
// slices of pointers. Go has no arithmetic on floats of 16 bits: they are widened,
// some hundred at a time, for the loops of float32. The loops in Go are the specification,
// and the tests hold the assembly to it.
//
// On machines with AVX2, assembly reduces the types of training loops:
// float32, float64, float16, bfloat16, int32, int64 and uint8. Another type uses the
// function of one of these where the bits are the same, as sums of uint32 do, and
// otherwise the loops in Go. The assembly works on whole vectors; the loops in Go reduce
// the last elements, fewer than 32 bytes of each buffer. AVX-512 is used for bfloat16
// alone: for the other types it is no faster where data comes from the second-level cache
// or beyond. The assembly keeps the running result of 256 bytes in registers over all
// sources; of a buffer of 16-bit floats, which are widened there, that is 128 bytes.
// No call of it works on more than 256 KiB, since a goroutine cannot be stopped there.
// Programs in _gen write it: make generate. The build tag noasm leaves it out, as does the
// race detector, which would not see what it does.
//
// AVX2 is used only together with F16C, which converts float16; every processor of Intel
// and AMD that has the one has the other. The bfloat16 instructions of AVX-512 are not
// used: they treat subnormals as zeros.
//
// # Concurrency
//
// Functions keep no state between calls and may be called concurrently. A
// call's destinations are its own until it returns; its sources may be read by
// others, but not written.
//
// # Failure
//
// The caller checks types, operations, lengths and overlaps. A [Type] or [Op] that is not one
// of the constants, two that are not [Defined] together, a negative count, or a divisor below
// one may panic or give wrong results.
package reduce
