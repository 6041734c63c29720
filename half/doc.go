// Package half provides the two 16-bit floats as types, so that collectives can reduce
// slices of them.
//
// # Model
//
// Go has no arithmetic on such floats. Float16 and BFloat16 hold the bits and convert from
// and to float32. They are structs, so that they cannot be added as integers by mistake.
// Collectives reduce them in float32 and round when a result is stored: once by the algorithm
// direct, at every step by algorithms that send partial results. A mean of Float16 is rounded
// once by all, since its sum may be too large for a Float16.
//
// Programs that keep the bits in slices of uint16, or of another library's type based on
// it, convert the slices with AsFloat16 and AsBFloat16, without a copy.
package half
