// Package chart draws what package measure has measured.
//
// # Model
//
// A picture has a row for each section of the results (see measure.Case.Section),
// and two panels in it: the median time over the length, both on logarithmic
// scales, and the bus bandwidth over the length. Algorithms are coloured lines with
// a mark of their own for each, yardsticks grey ones. The bus bandwidth of a
// yardstick is what the algorithm would have that takes as long.
//
// The colours are those of Okabe and Ito, Color Universal Design (2008), which the
// colour-blind can tell apart; the marks tell the lines apart in grey.
//
// # Failure
//
// Results without lengths, such as those of barriers alone, are an error: there is
// nothing to draw.
package chart
