! check.f90 - calls from Fortran against brute force: floats and doubles, arguments left out, what a
! refusal says. Prints "ok" or "FAILED" for each check.
! SPDX-License-Identifier: MIT OR Unlicense
subroutine doubles(x, n, radius, edge, expected)
  use nearfield_f64
  real(c_double), intent(in) :: x(3, n), radius, edge
  integer, intent(in) :: n
  integer(c_int64_t), intent(in) :: expected
  type(ugrid) :: grid
  type(ugrid_desc) :: desc
  type(nlist) :: list
  type(nlist_desc) :: wanted
  type(nlist_box) :: box
  integer(c_int64_t) :: needed
  desc%max = edge
  desc%periodic = 1
  desc%cell = radius
  if (ugrid_build(grid, desc, x, 0_c_size_t, n) /= UGRID_OK) print '(a)', "FAILED   a grid"
  needed = 0
  if (ugrid_count_pairs(grid, radius, needed) /= UGRID_OK) needed = -1
  print '(a, i0)', merge("ok      ", "FAILED  ", needed == expected) // " doubles: pairs ", needed
  needed = 0      ! offsets and ids are needed, or refused
  if (ugrid_neighbors(grid, radius, UGRID_HALF, capacity=0_c_int64_t) /= UGRID_BAD_ARGUMENT) &
    print '(a)', "FAILED   offsets left out"
  wanted%radius = radius
  wanted%half = 1
  box%cell = 0
  box%cell(1, 1) = edge; box%cell(2, 2) = edge; box%cell(3, 3) = edge
  box%periodic = 1
  if (nlist_build_box(list, wanted, box, x, 0_c_size_t, n) /= NLIST_OK) print '(a)', "FAILED   list"
  print '(a, i0)', merge("ok      ", "FAILED  ", list%total == expected) // " a list in a box: ", &
    list%total
  desc%cell = -1
  print '(3a)', merge("ok      ", "FAILED  ", index(nearfield_text(ugrid_result_text( &
    ugrid_build(grid, desc, x, 0_c_size_t, n))), "cell") > 0), " a refusal: ", &
    nearfield_text(ugrid_result_text(ugrid_build(grid, desc, x, 0_c_size_t, n)))
  call nlist_free(list)
  call ugrid_free(grid)
end subroutine

! The nearest of each point, by a tree.
subroutine floats(x, n, nearest)
  use nearfield_f32
  real(c_float), intent(in) :: x(3, n)
  integer, intent(in) :: n, nearest(n)
  type(lbvh) :: tree
  type(lbvh_desc) :: desc
  integer(c_int32_t) :: ids(2, n), found(n), i, wrong
  real(c_float) :: far, distances2(2, n)
  desc%kind = LBVH_POINTS
  if (lbvh_build(tree, desc, x, 0_c_size_t, n) /= LBVH_OK) print '(a)', "FAILED   a tree"
  far = 10
  if (lbvh_nearest_rows(tree, x, 0_c_size_t, n, 2, far, 0, ids, distances2, found) /= &
    LBVH_OK) &
    print '(a)', "FAILED   nearest"
  wrong = 0
  do i = 1, n
    if (.not. any(ids(:, i) == nearest(i) - 1)) wrong = wrong + 1
  end do
  print '(a, i0)', merge("ok      ", "FAILED  ", wrong == 0) // " floats: wrong neighbours ", wrong
  call lbvh_free(tree)
end subroutine

program check
  use, intrinsic :: iso_c_binding
  implicit none
  integer, parameter :: n = 500
  real(c_double), parameter :: radius = 0.17d0, edge = 1
  real(c_double) :: x(3, n), d(3), best
  integer(c_int64_t) :: pairs, state
  integer :: nearest(n), i, j
  pairs = 0
  state = 7
  do i = 1, n; do j = 1, 3
    state = mod(48271_c_int64_t * state, 2147483647_c_int64_t)
    x(j, i) = real(state / 256, c_double) / (2147483647 / 256 + 1)      ! the same as a float
  end do; end do
  do i = 1, n
    best = huge(best)
    do j = 1, n
      d = x(:, j) - x(:, i)
      if (i /= j .and. sum(d**2) < best) nearest(i) = j
      if (i /= j) best = min(best, sum(d**2))
      d = d - edge * anint(d / edge)
      if (j > i .and. sum(d**2) <= radius**2) pairs = pairs + 1
    end do
  end do
  call doubles(x, n, radius, edge, pairs)
  call floats(real(x, c_float), n, nearest)
end program
