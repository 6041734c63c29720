// Package chart draws the results of package measure.
//
// # Model
//
// A picture has a row of two panels for each section of the results (see
// measure.Case.Section): the median time over the length, on logarithmic
// scales, and the bus bandwidth over the length. Algorithms are coloured lines with
// different marks, yardsticks grey ones. The bus bandwidth of a yardstick is the bus
// bandwidth of an algorithm that takes as long.
//
// The colours come from Okabe and Ito, Color Universal Design (2008), which the
// colour-blind can distinguish; the marks distinguish the lines in grey.
//
// # Failure
//
// Results without lengths, such as results that contain only barriers, are an error.
package chart
