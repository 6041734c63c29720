package config

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/topology"
	"github.com/goccl/goccl/transport"
)

// Schema returns the JSON schema, of draft 7, of ccl.yaml, by which editors complete and check a
// file while it is written. It knows the modules of the registry and their parameters; nil means
// DefaultRegistry. Other modules are allowed, with any parameters. What one value cannot show,
// such as the name of an entry that does not exist, only Check finds.
func Schema(registry *ccl.Registry) ([]byte, error) {
	registry = cmp.Or(registry, ccl.DefaultRegistry())
	modules := append([]string{}, registry.Names()...) // not null
	byModule := []any{true}                            // not empty
	for _, name := range modules {
		a, _ := registry.Lookup(name)
		params, err := paramsSchema(a)
		if err != nil {
			return nil, err
		}
		byModule = append(byModule, object{
			"if":   object{"properties": object{"module": object{"const": name}}, "required": []string{"module"}},
			"then": object{"properties": object{"params": params}},
		})
	}

	entryName := spelt("[a-z0-9_]+", "The name of an entry has only letters a to z, digits and underscores.")
	bytesRange := spelt(ranges(sizePattern), `Write a size or a range, such as 64KiB, "1MiB-4MiB", "1MiB-" or "-1MiB".`, "integer")
	numberRange := spelt(ranges("[1-9][0-9]*"), `Write a number or a range, such as 4, "2-8", "3-" or "-8".`, "integer")
	numberRange["not"] = object{"const": 0}
	var reducing []ccl.Collective
	for _, c := range ccl.Collectives() {
		if c.Reduces() {
			reducing = append(reducing, c)
		}
	}

	schema := object{
		"$schema":     "http://json-schema.org/draft-07/schema#",
		"title":       "ccl.yaml",
		"description": "The configuration of goccl: which algorithm does which call, over which transport and topology.",
		"type":        "object",
		"required":    []string{"version"},
		"properties": object{
			"version": object{"const": 1, "description": "The version of the file format."},
			"defaults": mapping("Values that options and GOCCL_ variables override.", object{
				"algorithm":  described(entryName, "The entry for all calls, or auto: the rules choose.", auto),
				"transport":  described(object{"enum": append([]string{auto}, transport.Names()...)}, "What connects the ranks: goroutines (local), processes of one node (shm), processes of several nodes (mpi), or another transport that the program links.", auto),
				"timeout":    described(spelt("(none|"+durationPattern+")", "Write a duration with its unit, such as 60s, or none."), "A call that waits longer for other ranks fails; none: no limit.", "60s"),
				"world_size": described(ranksSchema, "The number of ranks.", nil),
				"debug":      described(object{"type": "boolean"}, "Detect buffers that change while an asynchronous call owns them.", false),
			}),
			"algorithms": object{
				"description":   "Entries: your own names for modules with parameters.",
				"type":          "object",
				"propertyNames": object{"pattern": "^[a-z0-9_]+$", "not": object{"const": auto}},
				"additionalProperties": object{
					"type":     "object",
					"required": []string{"module"},
					"properties": object{
						"module":     described(anyOf(object{"enum": modules}, object{"type": "string"}), "A registered algorithm.", nil),
						"params":     object{"type": "object", "description": "The module's parameters."},
						"topology":   described(object{"enum": kindNames()}, "The only kind of topology that the entry is for.", nil),
						"world_size": described(ranksSchema, "The only number of ranks that the entry is for.", nil),
					},
					"additionalProperties": false,
					"allOf":                byModule,
				},
			},
			"topology": object{
				"description": "How the ranks are arranged.",
				"type":        "object",
				"properties": object{
					"kind":  described(object{"enum": kindNames()}, "A ring, or a grid with or without closed rows and columns.", topology.Ring1D.String()),
					"count": described(anyOf(object{"const": auto}, ranksSchema), "The number of ranks; auto: any.", auto),
					"w":     described(ranksSchema, "The width of a grid; w times h is the number of ranks.", nil),
					"h":     described(ranksSchema, "The height of a grid.", nil),
				},
				"additionalProperties": false,
				"dependencies":         object{"w": []string{"h"}, "h": []string{"w"}},
			},
			"rules": object{
				"description": "For algorithm: auto. The first rule that matches a call chooses its entry. A rule without a field matches all values of it.",
				"type":        "array",
				"maxItems":    maxRules,
				"items": object{
					"type":     "object",
					"required": []string{"algorithm"},
					"properties": object{
						"collective": described(oneOrMore(object{"enum": ccl.Collectives()}), "The collectives that the rule matches.", nil),
						"bytes":      described(oneOrMore(bytesRange), `The length of one rank's input: 64KiB, "1MiB-4MiB", "1MiB-", "-1MiB", both ends included.`, nil),
						"ranks":      described(oneOrMore(numberRange), `The number of ranks of the group: 4, "2-8", "3-", "-8", both ends included.`, nil),
						"nodes":      described(oneOrMore(numberRange), `The number of nodes of the group if it has two levels, otherwise 1: 2, "2-8", "2-", both ends included.`, nil),
						"dtype":      described(oneOrMore(object{"enum": ccl.DTypes()}), "The element types that the rule matches.", nil),
						"op":         described(oneOrMore(object{"enum": ccl.Ops()}), "The operations that the rule matches, of collectives that reduce.", nil),
						"algorithm":  described(entryName, "The entry that the rule chooses.", nil),
					},
					"additionalProperties": false,
					"if":                   object{"required": []string{"op"}},
					"then":                 object{"properties": object{"collective": oneOrMore(object{"enum": reducing})}},
				},
			},
		},
		"additionalProperties": false,
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(schema); err != nil {
		return nil, err
	}
	return []byte(b.String()), nil
}

// object is a JSON object.
type object = map[string]any

const (
	sizePattern     = "(0|[1-9][0-9]*)([KkMmGg]([Ii][Bb])?)?"
	durationPattern = `[+]?(([0-9]+[.]?[0-9]*|[.][0-9]+)(ns|us|µs|μs|ms|s|m|h))+`
)

var ranksSchema = object{"type": "integer", "minimum": 1, "maximum": MaxRanks}

// described returns the schema with a description, and a default unless it is nil.
func described(schema object, description string, byDefault any) object {
	with := object{"description": description}
	for key, value := range schema {
		with[key] = value
	}
	if byDefault != nil {
		with["default"] = byDefault
	}
	return with
}

// mapping returns the schema of a mapping that has no other keys.
func mapping(description string, properties object) object {
	return object{"description": description, "type": "object", "properties": properties, "additionalProperties": false}
}

func anyOf(schemas ...any) object { return object{"anyOf": schemas} }

// oneOrMore returns the schema of a value, or of a list of values.
func oneOrMore(value object) object {
	return anyOf(value, object{"type": "array", "items": value, "minItems": 1, "uniqueItems": true})
}

// spelt returns the schema of a text, or of a number as YAML takes 4 and -4 for one, with the
// message that editors show for any other text.
func spelt(pattern, message string, types ...string) object {
	schema := object{"type": "string", "pattern": "^" + pattern + "$", "patternErrorMessage": message}
	if len(types) > 0 {
		schema["type"] = append(types, "string")
	}
	return schema
}

func ranges(of string) string { return fmt.Sprintf("(%s|%[1]s-|-%[1]s|%[1]s-%[1]s)", of) }

func kindNames() (names []string) {
	for _, k := range topology.Kinds() {
		names = append(names, k.String())
	}
	return names
}

// paramsSchema returns the schema of an algorithm's params, false if it has none.
func paramsSchema(a *ccl.Algorithm) (any, error) {
	params, err := a.Parameters()
	if err != nil || len(params) == 0 && a.Params == nil {
		return false, err
	}

	properties := object{}
	for _, p := range params {
		var schema object
		byDefault := any(p.String())

		switch field := p.Field.(type) {
		case *bool:
			schema, byDefault = object{"type": "boolean"}, *field
		case *int:
			schema, byDefault = object{"type": "integer"}, *field
		case *string:
			schema, byDefault = object{"type": "string"}, *field

		case *time.Duration:
			schema = spelt("[-]?"+durationPattern, "Write a duration with its unit, such as 60s.")
		case *ccl.ByteSize:
			schema = spelt(sizePattern, "Write a size such as 4096, 64KiB or 64K.", "integer")
			schema["minimum"] = 0
		}
		properties[p.Key] = described(schema, p.Doc, byDefault)
	}
	return mapping("The module's parameters.", properties), nil
}
