// Package chart draws the results of package measure.
//
// # Model
//
// A picture has a row of two panels for each section of the results (see
// measure.Case.Section): the median time over the length, on logarithmic
// scales, and the bus bandwidth over the length. Algorithms are coloured lines with
// different marks, yardsticks grey ones. The bus bandwidth of a yardstick is that of an
// algorithm that takes as long.
//
// The colours are those of Okabe and Ito, Color Universal Design (2008), which the
// colour-blind can distinguish; the marks distinguish the lines in grey.
//
// # Failure
//
// Results without lengths, such as those of barriers alone, are an error.
package chart
