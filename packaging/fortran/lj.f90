! lj.f90 - a Lennard-Jones liquid: molecular dynamics with a neighbour list that serves many steps.
! SPDX-License-Identifier: MIT OR Unlicense
!
!     make fortran && build/fortran/lj [STEPS [CELLS]]     default: 500 steps of 4 * 6^3 = 864 atoms
!
! Near the triple point (density 0.8442, temperature 0.72, units of sigma, epsilon and mass). The
! potential is cut at 2.5 and shifted so that potential and force end at 0 there: then energy is
! conserved, which the last line shows. What to look at: build_list and forces.
program lj
  use, intrinsic :: iso_c_binding
  use nearfield_f64
  implicit none

  integer, parameter :: wp = c_double
  real(wp), parameter :: cut = 2.5_wp, skin = 0.4_wp, dt = 0.004_wp, density = 0.8442_wp

  type(ugrid) :: grid
  type(nlist) :: list
  real(wp), allocatable :: x(:, :), v(:, :), f(:, :)
  real(wp) :: edge, potential, kinetic, energy, first, drift
  integer :: steps, cells, n, step, lists
  integer(c_int32_t) :: moved

  steps = argument(1, 500)
  cells = argument(2, 6)
  call place(cells)
  n = size(x, 2)
  lists = 0
  drift = 0
  call build_list
  call forces
  do step = 0, steps
    kinetic = sum(v**2) / 2
    energy = (kinetic + potential) / n
    if (step == 0) first = energy
    drift = max(drift, abs(energy - first))
    if (mod(10 * step, max(steps, 10)) == 0) &
      print '(a, i6, a, f6.3, a, f10.6)', "step", step, "   temperature", 2 * kinetic / (3 * n), &
        "   energy per atom", energy
    v = v + dt / 2 * f
    x = x + dt * v
    call check(nlist_moved(list, x, 0_c_size_t, moved), "nlist_moved")
    if (moved /= 0) call build_list
    call forces
    v = v + dt / 2 * f
  end do
  print '(i0, a, i0, a, i0, a, f10.6, a, f9.6, a, es8.1)', n, " atoms, ", steps, " steps, ", &
    lists, " lists: energy per atom", energy, ", never off by more than", drift, "; momentum", &
    maxval(abs(sum(v, 2)))
  call nlist_free(list)
  call ugrid_free(grid)

contains

  ! Every pair once, with a skin: the list holds until an atom has moved half of it.
  subroutine build_list
    type(ugrid_desc) :: cells_of
    type(nlist_desc) :: pairs
    integer(c_int) :: result
    cells_of%max = edge             ! the box begins at 0
    cells_of%periodic = 1
    cells_of%cell = cut + skin
    result = ugrid_build(grid, cells_of, x, 0_c_size_t, n)
    if (result /= UGRID_OK) call fail(nearfield_text(ugrid_result_text(result)))
    pairs%radius = cut
    pairs%skin = skin
    pairs%half = 1
    call check(nlist_build_ugrid(list, pairs, grid, x, 0_c_size_t, n), "nlist_build_ugrid")
    lists = lists + 1
  end subroutine

  ! Forces and potential energy. Row i of the list is partner(start(i) .. start(i + 1) - 1); all
  ! three count from 0.
  subroutine forces
    integer(c_int64_t), pointer :: start(:)
    integer(c_int32_t), pointer :: partner(:)
    real(wp) :: d(3), r2, push, fi(3)
    integer(c_int64_t) :: k
    integer :: i, j
    associate (rows => list%rows(list%current + 1))
      call c_f_pointer(rows%start, start, [n + 1])
      call c_f_pointer(rows%partner, partner, [rows%entries])
    end associate
    f = 0
    potential = 0
    do i = 1, n
      fi = 0
      do k = start(i) + 1, start(i + 1)
        j = partner(k) + 1
        d = x(:, j) - x(:, i)
        d = d - edge * anint(d / edge)      ! to the nearest image
        r2 = sum(d**2)
        if (r2 >= cut**2) cycle
        potential = potential + pair_energy(r2, push)
        fi = fi - push * d
        f(:, j) = f(:, j) + push * d
      end do
      f(:, i) = f(:, i) + fi
    end do
  end subroutine

  ! The potential of a pair at this squared distance; push: the force over the distance.
  real(wp) function pair_energy(r2, push) result(energy)
    real(wp), intent(in) :: r2
    real(wp), intent(out) :: push
    real(wp), parameter :: cut6 = cut**(-6), level = 4 * (cut6**2 - cut6), &
      slope = 24 * (2 * cut6**2 - cut6) / cut
    real(wp) :: r, r6
    r = sqrt(r2)
    r6 = r2**(-3)
    energy = 4 * (r6**2 - r6) - level + (r - cut) * slope
    push = 24 * (2 * r6**2 - r6) / r2 - slope / r
  end function

  ! A face-centred cube of atoms, with velocities that melt it, and no momentum.
  subroutine place(cells)
    integer, intent(in) :: cells
    real(wp), parameter :: corner(3, 4) = reshape( &
      [0., 0., 0.,  0., .5, .5,  .5, 0., .5,  .5, .5, 0.] * 1._wp, [3, 4])
    integer(c_int64_t) :: state
    integer :: a, b, c, k, i
    allocate (x(3, 4 * cells**3), v(3, 4 * cells**3), f(3, 4 * cells**3))
    edge = (4 * cells**3 / density)**(1 / 3._wp)
    i = 0
    state = 1
    do a = 0, cells - 1; do b = 0, cells - 1; do c = 0, cells - 1; do k = 1, 4
      i = i + 1
      x(:, i) = (real([a, b, c], wp) + corner(:, k)) * (edge / cells)
      v(:, i) = 1.2_wp * [normal(state), normal(state), normal(state)]
    end do; end do; end do; end do
    do k = 1, 3
      v(k, :) = v(k, :) - sum(v(k, :)) / size(v, 2)
    end do
  end subroutine

  ! About a normal number, mean 0 and variance 1: twelve uniform ones, less 6 (Park and Miller).
  real(wp) function normal(state)
    integer(c_int64_t), intent(inout) :: state
    integer :: k
    normal = -6
    do k = 1, 12
      state = mod(48271_c_int64_t * state, 2147483647_c_int64_t)
      normal = normal + real(state, wp) / 2147483647
    end do
  end function

  integer function argument(k, default)
    integer, intent(in) :: k, default
    character(20) :: text
    argument = default
    if (command_argument_count() < k) return
    call get_command_argument(k, text)
    read (text, *) argument
  end function

  subroutine check(result, call)
    integer(c_int), intent(in) :: result
    character(*), intent(in) :: call
    if (result /= NLIST_OK) call fail(call // ": " // nearfield_text(nlist_result_text(result)))
  end subroutine

  subroutine fail(text)
    character(*), intent(in) :: text
    print '(a)', "lj: " // text
    error stop 1
  end subroutine
end program
