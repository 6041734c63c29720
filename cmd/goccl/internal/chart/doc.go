// Package chart draws the results of package measure.
//
// # Model
//
// A picture has a head with the machine and the configuration, and rows of two panels with their
// legend beside them: the median time, on a logarithmic scale, with a band up to the 99th
// percentile, and the bus bandwidth. Each section of the results (see measure.Case.Section) has a
// row over the length, and another over each parameter that varies. Where ranks or topologies vary
// and nothing else does, there is a row over these. The panels of these rows show the times of the
// shortest input and the bandwidths of the longest.
//
// Algorithms are coloured lines with different marks, yardsticks grey ones. The bus bandwidth of a
// yardstick is that of an algorithm that takes as long. The medians of the algorithms determine the
// scales: a yardstick, or a far 99th percentile, is cut at the edge of the panel.
//
// The colours come from Okabe and Ito, Color Universal Design (2008); the colour-blind can
// distinguish them, and the marks distinguish the lines in grey.
//
// # Failure
//
// Results without anything to draw, such as barriers of the same number of ranks, are an error.
package chart
