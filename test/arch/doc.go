// Package arch tests the source of this module: which package imports which, what the
// public packages export, and that they are documented. It contains no code.
package arch
