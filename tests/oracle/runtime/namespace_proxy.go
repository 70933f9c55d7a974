//go:build namespace_proxy

package main

import "go.podman.io/image/v5/pkg/sysregistriesv2"

// namespaceProxy is the registry that a proxy is asked for.
func namespaceProxy(place sysregistriesv2.Endpoint) string { return place.NamespaceProxy }
