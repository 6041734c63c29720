package ccl

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// param is one field of an algorithm's parameters: the key it has in ccl.yaml and
// a pointer to it.
type param struct {
	key   string
	field any // *bool, *int, *string, *time.Duration or *ByteSize
	doc   string
}

// Parameter describes one parameter of an algorithm.
type Parameter struct {
	Key     string // in an entry's params
	Type    string // "bytes", "int", "bool", "string" or "duration"
	Default string // as ccl.yaml writes it
	Doc     string // of the field's doc tag
}

// Parameters describes what an entry's params can hold, in the order of the fields
// of what Params returns.
func (a *Algorithm) Parameters() ([]Parameter, error) {
	if a.Params == nil {
		return nil, nil
	}
	fields, err := paramFields(a.Params())
	if err != nil {
		return nil, fmt.Errorf("ccl: algorithm %q is faulty: %w", a.Name, err)
	}
	var all []Parameter
	for _, p := range fields {
		all = append(all, Parameter{p.key, p.typeName(), p.String(), p.doc})
	}
	return all, nil
}

func (p param) typeName() string {
	switch p.field.(type) {
	case *ByteSize:
		return "bytes"
	case *time.Duration:
		return "duration"
	}
	return reflect.TypeOf(p.field).Elem().String()
}

// paramFields lists the parameters in what Algorithm.Params returns: the fields with
// a yaml tag.
func paramFields(params any) ([]param, error) {
	v := reflect.ValueOf(params)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("its Params returns a %T, and has to return a pointer to a struct", params)
	}
	var found []param
	for i := range v.Elem().NumField() {
		field := v.Elem().Type().Field(i)
		key, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		if key == "" || key == "-" {
			continue
		}
		if !field.IsExported() {
			return nil, fmt.Errorf("its parameter %s is the unexported field %s", key, field.Name)
		}
		pointer := v.Elem().Field(i).Addr().Interface()
		switch pointer.(type) {
		case *bool, *int, *string, *time.Duration, *ByteSize:
			found = append(found, param{key, pointer, field.Tag.Get("doc")})
		default:
			return nil, fmt.Errorf("its parameter %s is a %s, and can be a bool, int, string, time.Duration or ccl.ByteSize",
				key, field.Type)
		}
	}
	return found, nil
}

// fill stores in params what stands at n, and returns the line of each.
func (n node) fill(params []param) (lines map[string]int, err error) {
	lines = make(map[string]int)
	known := make(fields)
	for _, p := range params {
		known[p.key] = func(n node) error {
			lines[p.key] = n.line
			return n.store(p.field)
		}
	}
	return lines, n.read(known)
}

// store reads n into a field of one of the types of param.
func (n node) store(field any) (err error) {
	switch p := field.(type) {
	case *bool:
		*p, err = n.boolean()
	case *int:
		*p, err = n.whole(math.MinInt, math.MaxInt)
	case *string:
		*p, err = n.text()
	case *time.Duration:
		*p, err = n.duration()
	case *ByteSize:
		*p, err = scalar(n, parseByteSize)
	}
	return err
}

// String returns the parameter's value as ccl.yaml writes it.
func (p param) String() string {
	if s, ok := p.field.(*string); ok {
		return strconv.Quote(*s)
	}
	return fmt.Sprint(reflect.ValueOf(p.field).Elem().Interface())
}
