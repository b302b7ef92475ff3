"""What meets the outside world: files, sockets, clocks. Each adapter fills one port."""
