// Package strictyaml reads files in a strict subset of YAML.
//
// # Model
//
// [Parse] returns the file's root [Node], and the Node's methods read mappings, lists and
// values. Every mistake is an error with the line, the column and the path of the key, and with
// the nearest name for a misspelt key. The caller makes the errors. A reader goes on after a
// mistake, and returns all of them joined, so that an author sees them at once.
package strictyaml
