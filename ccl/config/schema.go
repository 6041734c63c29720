package config

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/params"
	"github.com/goccl/goccl/topology"
	"github.com/goccl/goccl/transport"
)

// schemaText is the schema with two kinds of gaps: a value such as "$kinds" stands for a list, and
// "is" stands for the keys of a schema that several values have.
//
//go:embed schema.json
var schemaText []byte

// Schema returns the JSON schema, of draft 7, of ccl.yaml, by which editors complete and check a
// file while it is written.
//
// It knows the modules of the registry and their parameters; nil means DefaultRegistry. Other
// modules are allowed, with any parameters. What one value cannot show, such as the name of an
// entry that does not exist, only Check finds.
func Schema(registry ccl.Registry) ([]byte, error) {
	if registry == nil {
		registry = ccl.DefaultRegistry()
	}
	modules := slices.AppendSeq([]string{}, maps.Keys(registry)) // not null
	slices.Sort(modules)
	byModule := []any{true} // not empty
	for _, name := range modules {
		params, err := paramsSchema(registry[name])
		if err != nil {
			return nil, err
		}
		byModule = append(byModule, object{
			"if":   object{"properties": object{"module": object{"const": name}}, "required": []string{"module"}},
			"then": object{"properties": object{"params": params}},
		})
	}

	lists := schemaLists()
	lists["$modules"], lists["$by module"] = modules, byModule
	var schema any
	if err := json.Unmarshal(schemaText, &schema); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(fillGaps(schema, lists))
	return b.Bytes(), err
}

// fillGaps returns a value of schemaText without gaps.
func fillGaps(v any, lists map[string]any) any {
	switch v := v.(type) {
	case object:
		filled := object{}
		if name, ok := v["is"].(string); ok {
			maps.Copy(filled, sharedSchemas[name])
			delete(v, "is")
		}
		for key, value := range v {
			filled[key] = fillGaps(value, lists)
		}
		return filled
	// Lists, and the texts that stand for one.
	case []any:
		for i := range v {
			v[i] = fillGaps(v[i], lists)
		}
	case string:
		if list, ok := lists[v]; ok {
			return list
		}
	}
	return v
}

// schemaLists returns what the gaps stand for that do not depend on the registry.
func schemaLists() map[string]any {
	collectives := ccl.Collectives()
	reductions := slices.DeleteFunc(slices.Clone(collectives), func(c ccl.Collective) bool { return !c.Traits().Reduces })
	bytesRange := spelt(ranges(sizePattern), `Write a size or a range, such as 64KiB, "1MiB-4MiB", "1MiB-" or "-1MiB".`, "integer")
	numberRange := spelt(ranges("[1-9][0-9]*"), `Write a number or a range, such as 4, "2-8", "3-" or "-8".`, "integer")
	numberRange["not"] = object{"const": 0}
	return map[string]any{
		"$rules":            maxRules,
		"$kinds":            kindNames(),
		"$transports":       append([]string{auto}, transport.Names()...),
		"$some collectives": oneOrMore(object{"enum": collectives}),
		"$some reductions":  oneOrMore(object{"enum": reductions}),
		"$some dtypes":      oneOrMore(object{"enum": ccl.DTypes()}),
		"$some ops":         oneOrMore(object{"enum": ccl.Ops()}),
		"$some bytes":       oneOrMore(bytesRange),
		"$some numbers":     oneOrMore(numberRange),
	}
}

// object is a JSON object.
type object = map[string]any

const (
	sizePattern     = "(0|[1-9][0-9]*)([KkMmGg]([Ii][Bb])?)?"
	durationPattern = `[+]?(([0-9]+[.]?[0-9]*|[.][0-9]+)(ns|us|µs|μs|ms|s|m|h))+`
)

// sharedSchemas are those of values that several keys have.
var sharedSchemas = map[string]object{
	"ranks":   {"type": "integer", "minimum": 1, "maximum": MaxRanks},
	"entry":   spelt("[a-z0-9_]+", "The name of an entry has only letters a to z, digits and underscores."),
	"timeout": spelt("(none|"+durationPattern+")", "Write a duration with its unit, such as 60s, or none."),
}

// oneOrMore returns the choice between a value and a list of values.
func oneOrMore(value object) []any {
	return []any{value, object{"type": "array", "items": value, "minItems": 1, "uniqueItems": true}}
}

// spelt returns the schema of a text, or of a number as YAML takes 4 and -4 for numbers, with the
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
	all, err := params.Defaults(a.Name, a.Params)
	if err != nil || len(all) == 0 && a.Params == nil {
		return false, err
	}

	properties := object{}
	for _, p := range all {
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
		schema["description"], schema["default"] = p.Doc, byDefault
		properties[p.Key] = schema
	}
	return object{"description": "The module's parameters.", "type": "object", "properties": properties, "additionalProperties": false}, nil
}
