// Package half holds the two floats of 16 bits as types of their own, so that slices
// of them are elements that collectives know to add.
//
// # Model
//
// Go has no arithmetic on such floats. Float16 and BFloat16 hold the bits, convert
// from and to float32, and nothing else; the fields of a struct cannot be added by
// mistake, as those of a type made of uint16 could. Collectives fold them in float32
// and round once.
//
// Programs that keep the bits in slices of uint16, or of another library's type made of
// it, see them as halves through AsFloat16 and AsBFloat16, without a copy.
//
// # Concurrency
//
// There is no state.
//
// # Failure
//
// Nothing here fails: numbers that are too large become infinity.
package half
