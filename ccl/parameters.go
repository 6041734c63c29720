package ccl

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Parameter is one parameter of an algorithm: a field, with a yaml tag, of the struct that
// Algorithm.Params returns.
type Parameter struct {
	Key   string // the field's yaml tag: the key in an entry's params
	Doc   string // the field's doc tag
	Field any    // pointer to the field: *bool, *int, *string, *time.Duration or *ByteSize
}

// ParametersOf lists the parameters in params, which Algorithm.Params returned, in the order
// of the fields. It fails if params is not a pointer to a struct or a parameter has
// another type than Parameter.Field allows.
func ParametersOf(params any) ([]Parameter, error) {
	v := reflect.ValueOf(params)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("its Params returns a %T, and has to return a pointer to a struct", params)
	}

	var found []Parameter
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
			found = append(found, Parameter{key, field.Tag.Get("doc"), pointer})
		default:
			return nil, fmt.Errorf("its parameter %s is a %s, and can be a bool, int, string, time.Duration or ccl.ByteSize",
				key, field.Type)
		}
	}

	return found, nil
}

// Type returns "bytes", "int", "bool", "string" or "duration".
func (p Parameter) Type() string {
	switch p.Field.(type) {
	case *ByteSize:
		return "bytes"
	case *time.Duration:
		return "duration"
	}
	return reflect.TypeOf(p.Field).Elem().String()
}

// String returns the parameter's value as ccl.yaml writes it.
func (p Parameter) String() string {
	if s, ok := p.Field.(*string); ok {
		return strconv.Quote(*s)
	}
	return fmt.Sprint(reflect.ValueOf(p.Field).Elem().Interface())
}

// Parameters lists the parameters of the algorithm with their defaults.
func (a *Algorithm) Parameters() ([]Parameter, error) {
	if a.Params == nil {
		return nil, nil
	}
	all, err := ParametersOf(a.Params())
	if err != nil {
		return nil, fmt.Errorf("ccl: algorithm %q is faulty: %w", a.Name, err)
	}
	return all, nil
}
